"""Objects around a DataLoader, such as timm's PrefetchLoader, that move or normalise its batches.

An epoch of such an object is entered in the middle by a copy of it, around a loader that begins there. That is right if
what it makes of a batch does not depend on the batches before, which is tried once.
"""

# torch leaves the types of loaders open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader

from paceline.training.loader_position import (
    SeekableSource,
    StatefulSource,
    can_enter,
    enter_epoch,
    generators_of,
    start_epoch,
)
from paceline.training.randomness import get_random_state, preserve_random_state, set_random_state
from paceline.training.state_copy import same_states


def seekable(source: Any) -> Any:
    """The source, or a `WrappedLoader` of it if it holds one DataLoader and has as many batches."""
    if isinstance(source, DataLoader | SeekableSource | StatefulSource):
        return source
    names = [name for name, value in getattr(source, "__dict__", {}).items() if isinstance(value, DataLoader)]
    if len(names) != 1 or not can_enter(loader := getattr(source, names[0])):
        return source
    try:
        return WrappedLoader(source, names[0]) if len(source) == len(loader) else source
    except TypeError:  # one of them has no length
        return source


class WrappedLoader:
    """Epochs of an object around a DataLoader.

    Args:
        source: the object. It is not changed.
        name: the attribute that holds the loader.
    """

    def __init__(self, source: Any, name: str) -> None:
        self.loader: DataLoader[Any] = getattr(source, name)
        self.dataset, self.batch_size = self.loader.dataset, self.loader.batch_size
        self.num_workers = self.loader.num_workers
        self._source, self._name = source, name
        self._can_enter: bool | None = None  # not tried yet

    def __iter__(self) -> Iterator[Any]:
        return self._around(start_epoch(self.loader)) if self.can_enter else iter(self._source)

    @property
    def can_enter(self) -> bool:
        """Whether epochs can be entered in the middle. The first time, two batches are loaded to find out."""
        if self._can_enter is None:
            self._can_enter = self._makes_each_alone()
        return self._can_enter

    @property
    def draws_ahead(self) -> bool:
        """Whether batches are drawn before they are asked for. The object may be some batches ahead."""
        return self.can_enter

    def epoch(self, position: int = 0) -> Iterator[Any] | None:
        """The batches of an epoch from a position on; None if those before it have to be loaded."""
        batches = enter_epoch(self.loader, position) if self.can_enter else None
        return None if batches is None else self._around(batches)

    def _around(self, batches: Iterator[Any]) -> Iterator[Any]:
        """What the object makes of these batches."""
        around = copy.copy(self._source)
        object.__setattr__(around, self._name, _Epoch(self.loader, batches))
        return iter(around)

    def _makes_each_alone(self) -> bool:
        """Whether the object makes the same of the second batch of an epoch if it begins there."""
        generators = generators_of(self.loader)
        states = [generator.get_state() for generator in generators]
        with preserve_random_state():
            try:
                batches = list(islice(start_epoch(self.loader), 2))
                start, made = get_random_state(), list[Any]()
                for first in (0, 1):
                    set_random_state(start)
                    made += islice(self._around(iter(copy.deepcopy(batches[first:]))), 1 - first, 2 - first)
            except Exception:
                return False  # a fork will meet the error too
            finally:
                for generator, state in zip(generators, states, strict=True):
                    generator.set_state(state)
        return len(made) == 2 and same_states({"batch": made[0]}, {"batch": made[1]})


class _Epoch:
    """Stands for a loader: the rest of one epoch, with the loader's other attributes."""

    def __init__(self, loader: "DataLoader[Any]", batches: Iterator[Any]) -> None:
        self._loader, self._batches = loader, batches

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        return self._batches
