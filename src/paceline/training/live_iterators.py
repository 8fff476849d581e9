"""Iterators of forks that wait in memory, so that a fork that goes on reads nothing again.

Only for sources that cannot be entered in the middle. An iterator is found again by its position and by the random
state that its epoch began with, which is what decides the batches of an epoch.

Some sources share one position among all their iterators, such as a class whose `__iter__` returns the object itself.
So the first iterator that is taken up again is compared with one that reads the epoch from its start. If their batches
differ, no iterators are kept from then on.
"""

from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor

from paceline.training.randomness import get_random_state, set_random_state
from paceline.training.state_copy import same_states

MOST = 8  # iterators that are kept: as many as there are forks at first
MOST_WITH_WORKERS = 2  # if each has processes of its own


class LiveIterator(NamedTuple):
    """An iterator in the middle of its epoch, and the states of the source's own generators."""

    batches: Iterator[Any]
    generators: list[Tensor]


class LiveIterators:
    """Iterators that wait, the oldest first.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most, self._is_checked = most, False
        self._waiting: list[tuple[Hashable, LiveIterator]] = []

    def keep(self, position: int, epoch_random_state: dict[str, Any], iterator: LiveIterator) -> None:
        """Keep an iterator; the oldest goes if there are too many."""
        self._waiting.append((_key(position, epoch_random_state), iterator))
        del self._waiting[: max(0, len(self._waiting) - self.most)]

    def take(
        self, position: int, epoch_random_state: dict[str, Any], read_again: Callable[[], Iterator[Any]]
    ) -> LiveIterator | None:
        """An iterator at this position of such an epoch; None if there is none.

        `read_again` makes one the slow way, for the first comparison.
        """
        key = _key(position, epoch_random_state)
        found = next((i for i, (other, _) in enumerate(self._waiting) if other == key), None)
        if found is None:
            return None
        iterator = self._waiting.pop(found)[1]
        return iterator if self._is_checked else self._checked(iterator, read_again)

    def _checked(self, iterator: LiveIterator, read_again: Callable[[], Iterator[Any]]) -> LiveIterator | None:
        """The iterator if it goes on as one that reads from the start; else None, and no others are kept.

        Its first batch is taken here. The random state is then as it is after a batch.
        """
        now = get_random_state()
        reference = read_again()
        set_random_state(now)
        expected = next(reference, None)
        set_random_state(now)
        batch = next(iterator.batches, None)
        if same_states({"batch": expected}, {"batch": batch}):
            self._is_checked = True
            return iterator._replace(batches=chain([] if batch is None else [batch], iterator.batches))
        set_random_state(now)
        self.most, self._waiting = 0, []
        return None


def _key(position: int, state: dict[str, Any]) -> Hashable:
    """What decides the batches that follow: the position, and the random state at the start of the epoch."""
    numbers = [state["torch"], *state["numpy"], *state["python"], *state.get("cuda", ()), *state.get("source", ())]
    return position, *(n.numpy().tobytes() if isinstance(n, torch.Tensor) else n for n in numbers)
