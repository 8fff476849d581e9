"""The epochs of a DataLoader with worker processes, all from one set of workers.

A loader starts its workers anew for every epoch, and a fork that goes on would have to start them anew in every
interval. Here the workers stay. They seed their random numbers for each batch, from the epoch's seed and the number of
the batch, so a batch is the same whichever worker makes it, and whether or not the epoch was entered in the middle.
"""

# torch leaves the types of loaders open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader


class SeededRows(NamedTuple):
    """What a worker is to load, and the seed of its random numbers."""

    seed: int
    rows: Any


class WorkerPool:
    """The workers of a loader over a map-style data set.

    Args:
        loader: it is not changed, and its own workers are never started.
    """

    def __init__(self, loader: "DataLoader[Any]") -> None:
        self._source = copy.copy(loader)  # pools are found by their loaders, and go when those go
        self._attributes = _plain_attributes(loader.dataset)
        self._sampler = _SeededSampler(loader.sampler if loader.batch_sampler is None else loader.batch_sampler)
        self._loader = self._copy()

    def epoch(self, position: int) -> Iterator[Any]:
        """The batches of an epoch from a position on. Batches of an epoch that was not finished are thrown away."""
        seed = torch.empty((), dtype=torch.int64).random_(generator=self._source.generator)  # as a loader draws it
        self._sampler.begin(int(seed), position)
        attributes = _plain_attributes(self._source.dataset)
        if attributes != self._attributes:  # the workers have copies of the data set as it was
            self._attributes, self._loader = attributes, self._copy()
        try:
            return iter(self._loader)
        except RuntimeError:  # a worker was killed
            self._loader = self._copy()
            self._sampler.begin(int(seed), position)
            return iter(self._loader)

    def _copy(self) -> "DataLoader[Any]":
        """The loader with workers that stay."""
        loader = copy.copy(self._source)
        changes = {
            "dataset": _SeededDataset(loader.dataset),
            "sampler" if loader.batch_sampler is None else "batch_sampler": self._sampler,
            "persistent_workers": True,
            "generator": torch.Generator(),  # for the seeds of workers, which count for nothing
        }
        for name, value in changes.items():
            object.__setattr__(loader, name, value)  # a loader refuses to be changed
        loader._iterator = None
        return loader


class _SeededSampler:
    """A sampler that begins at a position and adds seeds. What it draws for earlier batches is drawn at once."""

    def __init__(self, sampler: Any) -> None:
        self._sampler, self._seed, self._position = sampler, 0, 0

    def begin(self, seed: int, position: int) -> None:
        """Set where the next epoch begins."""
        self._seed, self._position = seed, position

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[SeededRows]:
        rows = iter(self._sampler)
        for number in range(self._position):
            next(rows, number)  # the last group of batches may be shorter
        for number, batch in enumerate(rows, self._position):
            yield SeededRows((self._seed + number) % 2**63, batch)


class _SeededDataset:
    """A data set whose random numbers are seeded for each batch."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __getattr__(self, name: str) -> Any:
        if name == "_dataset":  # while it is unpickled
            raise AttributeError(name)
        return getattr(self._dataset, name)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, seeded: SeededRows) -> Any:
        _seed(seeded.seed)
        return self._dataset[seeded.rows]

    def __getitems__(self, seeded: SeededRows) -> Any:
        """All rows of a batch."""
        _seed(seeded.seed)
        get_all = getattr(self._dataset, "__getitems__", None)
        return get_all(seeded.rows) if get_all else [self._dataset[row] for row in seeded.rows]


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  users' data sets draw from it


def _plain_attributes(dataset: Any) -> dict[str, Any]:
    """The attributes of a data set that are numbers or text, such as the number of an epoch."""
    return {name: value for name, value in getattr(dataset, "__dict__", {}).items() if type(value) in (int, float, str)}
