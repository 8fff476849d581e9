"""Several batches for one update, for trainings that accumulate gradients."""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import ceil
from typing import Any

from paceline.training.loader_position import can_enter, draws_ahead, enter_epoch, start_epoch
from paceline.training.wrapped_loader import seekable


class BatchGroups:
    """Yields lists of `size` batches; the last list of an epoch may be shorter.

    Args:
        batches: a DataLoader, or any iterable that starts anew each time it is iterated.
        size: batches per update.
    """

    def __init__(self, batches: Iterable[Any], size: int) -> None:
        self.batches, self.size = seekable(batches), size

    def __iter__(self) -> Iterator[list[Any]]:
        return self._groups(start_epoch(self.batches))

    def __len__(self) -> int:
        batches: Any = self.batches
        return ceil(len(batches) / self.size)

    @property
    def can_enter(self) -> bool:
        """Whether epochs can be entered in the middle."""
        return can_enter(self.batches)

    @property
    def draws_ahead(self) -> bool:
        """Whether batches are drawn before they are asked for, with random numbers that cannot be saved."""
        return draws_ahead(self.batches)

    def epoch(self, position: int = 0) -> Iterator[list[Any]] | None:
        """The groups of an epoch from a position on; None if batches would have to be loaded for that."""
        batches = enter_epoch(self.batches, position * self.size)
        return None if batches is None else self._groups(batches)

    def _groups(self, batches: Iterator[Any]) -> Iterator[list[Any]]:
        while group := list(islice(batches, self.size)):
            yield group
