"""Entering an epoch in the middle, without loading the batches before it.

A DataLoader over a map-style data set draws which rows a batch takes apart from loading them. So a resumed fork draws
the rows of the earlier batches again, with the same random numbers, and loads none of them.
"""

# torch leaves the types of loaders open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import copy
from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from torch.utils.data import DataLoader, IterableDataset

from paceline.training.worker_pool import WorkerPool

_POOLS: "WeakKeyDictionary[DataLoader[Any], WorkerPool]" = WeakKeyDictionary()


@runtime_checkable
class SeekableSource(Protocol):
    """Batches whose epochs can be entered in the middle."""

    @property
    def can_enter(self) -> bool:
        """Whether this source can do it after all."""
        ...

    @property
    def draws_ahead(self) -> bool:
        """Whether batches are drawn before they are asked for, with random numbers that cannot be saved."""
        ...

    def epoch(self, position: int = 0) -> Iterator[Any] | None:
        """The batches of an epoch from a position on; None if this source cannot do it after all."""
        ...


@runtime_checkable
class StatefulSource(Protocol):
    """Batches with a state of their own: its position in the epoch that goes on."""

    def state_dict(self) -> dict[str, Any]:
        """The position of the epoch that goes on."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Make the next epoch begin there."""
        ...


def enter_epoch(source: Any, position: int) -> Iterator[Any] | None:
    """The batches of an epoch from a position on; None if those before it would have to be loaded.

    The random state must be that of the start of the epoch.
    """
    if isinstance(source, SeekableSource):
        return source.epoch(position)
    return _batches_from(source, position) if _is_plain_loader(source) else None


def can_enter(source: Any) -> bool:
    """Whether epochs of a source can be entered in the middle."""
    return source.can_enter if isinstance(source, SeekableSource) else _is_plain_loader(source)


def draws_ahead(source: Any) -> bool:
    """Whether batches are drawn before they are asked for, with random numbers that cannot be saved."""
    if isinstance(source, SeekableSource):
        return source.draws_ahead
    return _is_plain_loader(source) and source.num_workers > 0


def _is_plain_loader(source: Any) -> bool:
    """Whether it is a DataLoader over a map-style data set, with torch's own way through it."""
    return (
        isinstance(source, DataLoader)
        and type(source).__iter__ is DataLoader.__iter__
        and not isinstance(source.dataset, IterableDataset)  # pyright: ignore[reportUnknownMemberType]
    )


def start_epoch(source: Any) -> Iterator[Any]:
    """The batches of a new epoch."""
    pool = _pool_of(source)
    return iter(source) if pool is None else pool.epoch(0)


def _batches_from(loader: "DataLoader[Any]", position: int) -> Iterator[Any]:
    """The batches of an epoch from a position on."""
    pool = _pool_of(loader)
    if pool is not None:
        return pool.epoch(position)
    rest = copy.copy(loader)
    is_batched = loader.batch_sampler is not None
    sampler = _LateSampler(loader.batch_sampler if is_batched else loader.sampler, position)
    object.__setattr__(rest, "batch_sampler" if is_batched else "sampler", sampler)  # a loader refuses to be changed
    batches = iter(rest)
    sampler.skip()
    return batches


def _pool_of(source: Any) -> WorkerPool | None:
    """The workers of a loader; None for other sources."""
    if not (_is_plain_loader(source) and source.num_workers):
        return None
    if source not in _POOLS:
        _POOLS[source] = WorkerPool(source)
    return _POOLS[source]


def generators_of(source: Any) -> "list[torch.Generator]":
    """The generators of a loader's own, which are no part of the global random state."""
    loader = getattr(source, "loader", source)  # of an object around one
    if not isinstance(loader, DataLoader):
        return []
    batch_sampler: Any = loader.batch_sampler
    found = [loader.generator, getattr(loader.sampler, "generator", None)]
    found.append(getattr(getattr(batch_sampler, "sampler", None), "generator", None))
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


class _LateSampler:
    """A sampler that begins at a position. What it draws for the earlier ones is drawn when it is first asked."""

    def __init__(self, sampler: Any, position: int) -> None:
        self._sampler, self._left = sampler, position
        self._rows: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        self._rows = iter(self._sampler)  # some samplers draw here
        return self._generate()

    def __len__(self) -> int:
        return len(self._sampler)

    def skip(self) -> None:
        """Draw the rows of the earlier batches now."""
        while self._left:
            next(self._rows, None)  # the last group of batches may be shorter
            self._left -= 1

    def _generate(self) -> Iterator[Any]:
        self.skip()
        yield from self._rows
