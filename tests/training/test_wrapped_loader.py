"""An object around a DataLoader is entered in the middle if it makes each batch from the loader's batch alone."""

from collections.abc import Iterator
from copy import deepcopy
from itertools import accumulate, islice
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from paceline.training import BatchGroups, Randomness
from paceline.training.loader_position import can_enter, draws_ahead, enter_epoch
from paceline.training.resumable_batches import ResumableBatches
from paceline.training.wrapped_loader import WrappedLoader, seekable


class Rows(Dataset[Tensor]):
    """Rows that count how often they are loaded, with random noise as an augmentation has it."""

    def __init__(self) -> None:
        self.loaded = 0

    def __len__(self) -> int:
        return 20

    def __getitem__(self, row: int) -> Tensor:
        self.loaded += 1
        return row + torch.rand(())


class Prefetching:
    """Doubles batches in place, one batch ahead."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Tensor]:
        batches = iter(self.loader)
        ahead = next(batches).mul_(2)
        for batch in batches:
            yield ahead
            ahead = batch.mul_(2)
        yield ahead


class Summing(Prefetching):
    """Adds to each batch those before it."""

    def __iter__(self) -> Iterator[Tensor]:
        return accumulate(self.loader)


class Erasing(Prefetching):
    """Draws random numbers for each batch."""

    def __iter__(self) -> Iterator[Tensor]:
        return (batch + torch.rand(()) for batch in self.loader)


class Failing(Prefetching):
    def __iter__(self) -> Iterator[Tensor]:
        raise RuntimeError("no")


class Shorter(Prefetching):
    """Ends an epoch early."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[Tensor]:
        return islice(self.loader, 2)


class Unsized:
    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.loader)


def loader(rows: Rows | None = None, **settings: Any) -> "DataLoader[Tensor]":
    return DataLoader(Rows() if rows is None else rows, batch_size=4, shuffle=True, **settings)


def test_only_one_loader_inside_an_object_of_the_same_length_is_taken() -> None:
    inner = loader()
    two = Prefetching(inner)
    two.other = loader()  # pyright: ignore[reportAttributeAccessIssue]
    for source in (inner, [1, 2], two, Unsized(inner), Shorter(inner), Prefetching([1, 2])):
        assert seekable(source) is source
    wrapped = seekable(Prefetching(inner))
    assert isinstance(wrapped, WrappedLoader)
    assert seekable(wrapped) is wrapped
    assert (wrapped.dataset, wrapped.batch_size) == (inner.dataset, 4)


@pytest.mark.parametrize("kind", [Summing, Erasing, Failing])
def test_one_that_looks_at_other_batches_or_draws_is_read_from_the_start(kind: type[Prefetching]) -> None:
    source = seekable(kind(loader()))
    assert not can_enter(source)
    assert not draws_ahead(source)
    assert enter_epoch(source, 1) is None


def test_finding_out_leaves_random_numbers_alone() -> None:
    generator = torch.Generator().manual_seed(3)
    before = torch.get_rng_state(), generator.get_state()
    assert can_enter(seekable(Prefetching(loader(generator=generator))))
    for state, now in zip(before, (torch.get_rng_state(), generator.get_state()), strict=True):
        assert torch.equal(state, now)


def take(batches: ResumableBatches, randomness: Randomness, count: int) -> list[Any]:
    with randomness.activate():
        return [batches.next().tolist() for _ in range(count)]


@pytest.mark.parametrize("settings", [{}, {"num_workers": 1}, {"generator": 3}])
def test_a_fork_enters_its_epoch_in_the_middle(settings: dict[str, Any]) -> None:
    def make(seed: int) -> tuple[Rows, ResumableBatches, Randomness]:
        own = {"generator": torch.Generator().manual_seed(3)} if "generator" in settings else {}
        rows, randomness = Rows(), Randomness()
        randomness.reseed(seed)
        return rows, ResumableBatches(Prefetching(loader(rows, **{**settings, **own})), randomness), randomness

    _, batches, randomness = make(0)
    take(batches, randomness, 3)
    state, now = deepcopy(batches.state_dict()), deepcopy(randomness.state)
    batches.begin_interval()
    expected = take(batches, randomness, 9)
    rows, again, other = make(99)
    assert can_enter(again.source)
    rows.loaded = 0
    again.load_state_dict(state)
    other.state = now
    assert take(again, other, 2) == expected[:2]
    assert rows.loaded <= 8  # none of the three batches before
    assert take(again, other, 7) == expected[2:]
    assert sorted(int(row / 2) for batch in expected[2:7] for row in batch) == list(range(20))


def test_groups_of_batches_are_entered_too() -> None:
    groups = BatchGroups(Prefetching(DataLoader(torch.arange(12), batch_size=2)), 2)
    assert can_enter(groups)
    assert [[batch.tolist() for batch in group] for group in groups.epoch(2) or ()] == [[[16, 18], [20, 22]]]
