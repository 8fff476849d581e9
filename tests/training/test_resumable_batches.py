"""A position in the data can be saved and returned to, whatever the batches come from."""

import warnings
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    WeightedRandomSampler,
)

from paceline.errors import TrainingError
from paceline.training import DeviceBatches, Randomness
from paceline.training.resumable_batches import ResumableBatches

SOURCES = {
    "list": lambda: [torch.tensor([i]) for i in range(5)],
    "loader": lambda: DataLoader(torch.arange(10), batch_size=2, shuffle=True),
    "device": lambda: DeviceBatches(torch.arange(10), size=2, transform=lambda batch: batch[0]),
}


def resumable(source: Iterable[Any], seed: int = 0) -> tuple[ResumableBatches, Randomness]:
    randomness = Randomness()
    randomness.reseed(seed)
    return ResumableBatches(source, randomness), randomness


def take(batches: ResumableBatches, randomness: Randomness, count: int) -> list[list[int]]:
    with randomness.activate():
        return [batches.next().tolist() for _ in range(count)]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 8])
@pytest.mark.parametrize("source", SOURCES)
def test_a_position_is_returned_to_in_the_middle_of_an_epoch(source: str, count: int) -> None:
    batches, randomness = resumable(SOURCES[source]())
    take(batches, randomness, count)
    state, generators = deepcopy(batches.state_dict()), deepcopy(randomness.state)
    expected = take(batches, randomness, 7)
    again, other = resumable(SOURCES[source](), seed=99)
    again.load_state_dict(state)
    other.state = generators
    assert take(again, other, 7) == expected


def test_each_epoch_sees_every_row_in_an_order_of_its_own() -> None:
    batches, randomness = resumable(SOURCES["loader"]())
    first, second = (take(batches, randomness, 5) for _ in range(2))
    for epoch in (first, second):
        assert sorted(row for batch in epoch for row in batch) == list(range(10))
    assert first != second


def test_after_a_restart_an_epoch_begins() -> None:
    batches, randomness = resumable(SOURCES["list"]())
    assert take(batches, randomness, 2) == [[0], [1]]
    batches.restart(0)
    assert take(batches, randomness, 2) == [[0], [1]]
    assert batches.position == 2


def test_empty_batches_say_what_to_do() -> None:
    batches, randomness = resumable([])
    with pytest.raises(TrainingError, match=r"batches is empty: expected a DataLoader"):
        take(batches, randomness, 1)
    once, randomness = resumable(iter([torch.ones(1)]))
    with pytest.raises(TrainingError, match="can be iterated again and again"):
        take(once, randomness, 2)


class Rows(Dataset[torch.Tensor]):
    """Rows that count how often they are loaded, with random noise as an augmentation has it."""

    def __init__(self, count: int = 20) -> None:
        self.count, self.loaded = count, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> torch.Tensor:
        self.loaded += 1
        return row + torch.rand(())


def loaders() -> dict[str, DataLoader[torch.Tensor]]:
    rows, generator = Rows(), torch.Generator().manual_seed(3)
    weighted = WeightedRandomSampler([1.0 + i for i in range(20)], 20)
    return {
        "shuffled": DataLoader(rows, batch_size=2, shuffle=True),
        "in order": DataLoader(rows, batch_size=3, drop_last=True),
        "a generator of its own": DataLoader(rows, batch_size=2, shuffle=True, generator=generator),
        "a sampler": DataLoader(rows, batch_size=2, sampler=weighted),
        "a batch sampler": DataLoader(rows, batch_sampler=BatchSampler(SequentialSampler(rows), 2, drop_last=False)),
        "single rows": DataLoader(rows, batch_size=None, shuffle=True),
    }


@pytest.mark.parametrize("name", loaders())
def test_a_loader_is_entered_in_the_middle_without_loading_what_was_before(name: str) -> None:
    batches, randomness = resumable(loaders()[name])
    take(batches, randomness, 4)
    state, now = deepcopy(batches.state_dict()), deepcopy(randomness.state)
    expected = take(batches, randomness, 20)
    loader = loaders()[name]
    again, other = resumable(loader, seed=99)
    again.load_state_dict(state)
    other.state = now
    assert loader.dataset.loaded == 0  # pyright: ignore[reportAttributeAccessIssue]
    assert take(again, other, 20) == expected


def test_with_workers_it_makes_no_difference_whether_a_fork_is_resumed() -> None:
    def make() -> tuple[ResumableBatches, Randomness]:
        return resumable(DataLoader(Rows(), batch_size=2, shuffle=True, num_workers=1))

    batches, randomness = make()
    first = take(batches, randomness, 3)
    state, now = deepcopy(batches.state_dict()), deepcopy(randomness.state)
    batches.begin_interval()
    expected = take(batches, randomness, 9)
    again, other = make()
    again.load_state_dict(state)
    other.state = now
    again.begin_interval()
    assert take(again, other, 9) == expected
    rows = [int(row) for batch in (*first, *expected[:7]) for row in batch]
    assert sorted(rows) == list(range(20))


class Counting:
    """Batches with a state of their own."""

    def __init__(self) -> None:
        self.next_batch, self.begins_at, self.read = 0, 0, 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        self.next_batch, self.begins_at = self.begins_at, 0
        while self.next_batch < 6:
            self.next_batch += 1
            self.read += 1
            yield torch.tensor([self.next_batch])

    def state_dict(self) -> dict[str, Any]:
        return {"next": self.next_batch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.begins_at = state_dict["next"]


def test_a_source_with_a_state_gets_it_back() -> None:
    batches, randomness = resumable(Counting())
    take(batches, randomness, 8)
    state = deepcopy(batches.state_dict())
    expected = take(batches, randomness, 7)
    source = Counting()
    again, other = resumable(source)
    again.load_state_dict(state)
    assert take(again, other, 7) == expected
    assert source.read == 7


def test_reading_again_says_what_it_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.training.resumable_batches.SLOW_SECONDS", 0.0)
    batches, randomness = resumable(SOURCES["list"]())
    take(batches, randomness, 3)
    state = batches.state_dict()
    again, randomness = resumable(SOURCES["list"]())
    again.load_state_dict(state)
    with pytest.warns(UserWarning, match=r"reads its epoch again from the start, here 3 batches"):
        take(again, randomness, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        again.load_state_dict(state)
        take(again, randomness, 1)


class Reading(IterableDataset[torch.Tensor]):
    """A data set that is read from its start, with random noise, and counts what was read."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        for row in range(20):
            self.read += 1
            yield row + torch.rand(())


def in_turn(batches: ResumableBatches, randomness: Randomness) -> list[list[float]]:
    """What three forks take, in turn, from the same start; and one that is cloned from the second."""
    forks = [(deepcopy(batches.state_dict()), deepcopy(randomness.state))] * 3
    taken: list[list[float]] = [[], [], [], []]
    for count in (3, 4, 6):
        if count == 6:
            forks.append(forks[1])
        for i, (position, generators) in enumerate(forks):
            batches.load_state_dict(position)
            randomness.state = generators
            if count == 6 and i == 3:
                batches.restart(8)
                randomness.reseed(8)
            taken[i] += [value for batch in take(batches, randomness, count) for value in batch]
            forks[i] = deepcopy(batches.state_dict()), deepcopy(randomness.state)
    return taken


@pytest.mark.parametrize("generator", [None, 5])
def test_forks_in_memory_read_nothing_again(generator: int | None) -> None:
    def source() -> DataLoader[torch.Tensor]:
        own = None if generator is None else torch.Generator().manual_seed(generator)
        return DataLoader(Reading(), batch_size=2, generator=own)

    kept, reads_again = source(), source()
    batches, other = resumable(kept), resumable(reads_again)
    other[0]._live.most = 0
    assert in_turn(*batches) == in_turn(*other)
    assert kept.dataset.read <= 4 * 26 + 2 * 4 < reads_again.dataset.read  # pyright: ignore[reportAttributeAccessIssue]


class OnePosition:
    """An iterable with one position for all its iterators."""

    def __iter__(self) -> "OnePosition":
        self.row = 0
        return self

    def __next__(self) -> torch.Tensor:
        self.row += 1
        if self.row > 9:
            raise StopIteration
        return torch.tensor([self.row])


def test_iterators_that_share_a_position_are_not_kept() -> None:
    batches, other = resumable(OnePosition()), resumable(OnePosition())
    other[0]._live.most = 0
    assert in_turn(*batches) == in_turn(*other)
    assert batches[0]._live.most == 0
