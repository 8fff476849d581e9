"""Which sources can be entered in the middle, and what generators a loader has of its own."""

from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, IterableDataset

from paceline.training import BatchGroups, DeviceBatches
from paceline.training.loader_position import draws_ahead, enter_epoch, generators_of


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(6))


class OwnPasses(DataLoader[int]):
    def __iter__(self):  # as accelerate's loaders do
        return iter([1, 2])


def test_only_plain_loaders_over_map_style_data_are_entered_in_the_middle() -> None:
    rows = list(range(6))
    assert enter_epoch(DataLoader(rows, batch_size=2), 1) is not None
    assert enter_epoch(DataLoader(Stream(), batch_size=2), 1) is None
    assert enter_epoch(OwnPasses(rows), 1) is None
    assert enter_epoch(rows, 1) is None
    assert enter_epoch(DeviceBatches(torch.arange(6), size=2), 1) is not None


def test_workers_draw_ahead() -> None:
    rows = list(range(6))
    assert draws_ahead(DataLoader(rows, num_workers=1))
    assert draws_ahead(BatchGroups(DataLoader(rows, num_workers=1), 2))
    assert not draws_ahead(DataLoader(rows))
    assert not draws_ahead(DeviceBatches(torch.arange(6), size=2))
    assert not draws_ahead(rows)


def test_the_loader_itself_is_not_changed() -> None:
    loader = DataLoader(list(range(6)), batch_size=2)
    assert [batch.tolist() for batch in enter_epoch(loader, 2) or ()] == [[4, 5]]
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]


def test_generators_are_found_once() -> None:
    generator = torch.Generator()
    assert generators_of(DataLoader(list(range(6)), shuffle=True, generator=generator)) == [generator]
    assert generators_of(DataLoader(list(range(6)), shuffle=True)) == []
    assert generators_of([1, 2]) == []
