"""Batches, epoch after epoch, with a position that can be saved and returned to.

How a position is returned to depends on the source. `DeviceBatches`, a DataLoader over a map-style data set and an
object around one are entered in the middle. A source with a state of its own, such as torchdata's StatefulDataLoader,
gets its state back. From any other source the earlier batches are read again, which takes as long as it did the first
time, unless the iterator of the fork is still in memory.

Nothing is read until the next batch is asked for: a clone begins a new epoch, and needs no position.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from paceline.errors import TrainingError
from paceline.training.live_iterators import MOST, MOST_WITH_WORKERS, LiveIterator, LiveIterators
from paceline.training.loader_position import (
    SeekableSource,
    StatefulSource,
    can_enter,
    draws_ahead,
    enter_epoch,
    generators_of,
    start_epoch,
)
from paceline.training.randomness import Randomness, get_random_state, set_random_state
from paceline.training.wrapped_loader import seekable

SLOW_SECONDS = 1.0  # reading an epoch again is worth a warning if it takes longer


class ResumableBatches:
    """Epoch after epoch over a source of batches.

    `position` is the number of batches taken in this epoch, -1 before it has begun. `epoch_random_state` is the global
    random state at the start of the epoch.

    Args:
        source: a DataLoader, or any iterable that starts anew each time it is iterated.
        randomness: the fork's random state; it must be active while batches are taken.
    """

    def __init__(self, source: Iterable[Any], randomness: Randomness) -> None:
        self.source: Iterable[Any] = seekable(source)
        self.position, self.epoch_random_state = -1, randomness.state
        self._iterator: Iterator[Any] | None = None  # None if a position has yet to be returned to
        self._source_state: dict[str, Any] | None = None  # of the source itself, at that position
        self._live = LiveIterators(MOST_WITH_WORKERS if getattr(self.source, "num_workers", 0) else MOST)
        self._has_warned = False

    def next(self) -> Any:
        """The next batch; a new epoch begins when the last one is over."""
        for _ in range(2):
            if self.position < 0:
                self.begin_epoch()
                self._iterator = start_epoch(self.source)
            elif self._iterator is None:
                self._iterator = self._return_to_position()
            try:
                batch = next(self._iterator)
            except StopIteration:
                self.position = -1
                continue
            self.position += 1
            return batch
        raise TrainingError(
            "batches is empty: expected a DataLoader, or an iterable that can be iterated again and again"
        )

    def begin_epoch(self) -> None:
        """Record that an epoch begins with the present random state."""
        self.epoch_random_state, self.position = get_random_state(), 0
        generators = generators_of(self.source)
        if generators:
            self.epoch_random_state["source"] = [generator.get_state() for generator in generators]

    def begin_interval(self) -> None:
        """Do what a resumed fork does, so that it makes no difference whether one is resumed.

        Random numbers that were drawn ahead cannot be saved, by worker processes for example. Such sources begin anew
        in each interval.
        """
        if self.position > 0 and draws_ahead(self.source):
            self._iterator = None

    def restart(self, seed: int) -> None:
        """Make the next batch the first of a new epoch. Generators of the source's own start from the seed."""
        self._leave()
        self.position = -1
        for generator in generators_of(self.source):
            generator.manual_seed(seed)

    def state_dict(self) -> dict[str, Any]:
        """The position, the random state that the epoch began with, and the source's own state if it has one."""
        state = {"in_pass": self.position, "pass_generators": self.epoch_random_state, **self._own_state()}
        if self.position < 0:
            state["own_generators"] = [generator.get_state() for generator in generators_of(self.source)]
        return state

    def set_position(self, state: dict[str, Any]) -> None:
        """Take over a position without preparing batches, for code that gets the epoch's batches in another way."""
        self.epoch_random_state, self.position = state["pass_generators"], int(state["in_pass"])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Return to a position."""
        self._leave()
        self.set_position(state)
        self._source_state = state.get("source")
        _set_states(generators_of(self.source), state.get("own_generators", ()))

    def _leave(self) -> None:
        """Keep the iterator of a fork that waits, if its source cannot be entered in the middle."""
        if self._iterator is not None and self.position > 0 and self._reads_again():
            generators = [generator.get_state() for generator in generators_of(self.source)]
            self._live.keep(self.position, self.epoch_random_state, LiveIterator(self._iterator, generators))
        self._iterator = None

    def _return_to_position(self) -> Iterator[Any]:
        """The rest of the epoch, from the position on."""
        now = get_random_state()
        if self._reads_again():
            live = self._live.take(self.position, self.epoch_random_state, self._from_position)
            if live is not None:
                _set_states(generators_of(self.source), live.generators)
                return live.batches
        try:
            return self._from_position()
        finally:
            set_random_state(now)

    def _reads_again(self) -> bool:
        """Whether the source has no position that it could return to, and takes no batches ahead."""
        source = self.source
        return not (isinstance(source, StatefulSource) or can_enter(source) or draws_ahead(source))

    def _from_position(self) -> Iterator[Any]:
        set_random_state(self.epoch_random_state)
        _set_states(generators_of(self.source), self.epoch_random_state.get("source", ()))
        entered = enter_epoch(self.source, self.position)
        if entered is not None:
            return entered
        if self._source_state is not None and isinstance(self.source, StatefulSource):
            self.source.load_state_dict(self._source_state)
            return iter(self.source)
        return self._read_again()

    def _read_again(self) -> Iterator[Any]:
        """An epoch whose earlier batches are drawn again, with the same random numbers, and thrown away."""
        began, batches = time.perf_counter(), iter(self.source)
        for _ in range(self.position):
            next(batches)
        seconds = time.perf_counter() - began
        if seconds > SLOW_SECONDS and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"a fork that is resumed reads its epoch again from the start, here {self.position:,} batches in "
                f"{seconds:.1f} s: use a DataLoader over a map-style data set, DeviceBatches, or batches with "
                "state_dict and load_state_dict, which are entered in the middle",
                stacklevel=2,
            )
        return batches

    def _own_state(self) -> dict[str, Any]:
        source: Any = self.source
        if self.position < 0 or isinstance(source, SeekableSource) or not isinstance(source, StatefulSource):
            return {}
        if self._iterator is None and self._source_state is not None:
            return {"source": self._source_state}
        return {"source": source.state_dict()}


def _set_states(generators: list[torch.Generator], states: Iterable[Tensor]) -> None:
    for generator, state in zip(generators, states, strict=False):
        generator.set_state(state)
