"""A position in the data can be saved and returned to, whatever the batches come from."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

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
    batches.restart()
    assert take(batches, randomness, 2) == [[0], [1]]
    assert batches.position == 2


def test_empty_batches_say_what_to_do() -> None:
    batches, randomness = resumable([])
    with pytest.raises(TrainingError, match=r"batches is empty: expected a DataLoader"):
        take(batches, randomness, 1)
    once, randomness = resumable(iter([torch.ones(1)]))
    with pytest.raises(TrainingError, match="can be iterated again and again"):
        take(once, randomness, 2)
