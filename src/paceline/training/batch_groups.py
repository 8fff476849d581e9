"""Several batches for one update, for trainings that accumulate gradients."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any


class BatchGroups:
    """Yields lists of `size` batches; the last list of an epoch may be shorter.

    Args:
        batches: a DataLoader, or any iterable that starts anew each time it is iterated.
        size: batches per update.
    """

    def __init__(self, batches: Iterable[Any], size: int) -> None:
        self.batches, self.size = batches, size

    def __iter__(self) -> Iterator[list[Any]]:
        batches = iter(self.batches)
        while group := list(islice(batches, self.size)):
            yield group
