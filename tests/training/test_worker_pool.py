"""One set of workers serves all epochs of a loader, and batches do not depend on which worker makes them."""

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from paceline.training.worker_pool import WorkerPool


class Rows(Dataset[torch.Tensor]):
    """A row's number, random numbers of each kind, the process that loaded it, and a setting of the data set."""

    def __init__(self) -> None:
        self.epoch = 0

    def __len__(self) -> int:
        return 12

    def __getitem__(self, row: int) -> torch.Tensor:
        drawn = [float(torch.rand(())), random.random(), np.random.random()]  # noqa: NPY002
        return torch.tensor([row, *drawn, os.getpid(), self.epoch], dtype=torch.float64)


def take(batches: Iterator[torch.Tensor]) -> torch.Tensor:
    return torch.cat([batch.reshape(-1, 6) for batch in batches])


def epoch(pool: WorkerPool, position: int = 0) -> torch.Tensor:
    torch.manual_seed(3)
    return take(pool.epoch(position))


@pytest.mark.parametrize("size", [2, None])
def test_an_epoch_is_the_same_from_the_middle_with_other_numbers_of_workers_and_in_one_process(
    size: int | None,
) -> None:
    one, two = (WorkerPool(DataLoader(Rows(), size, shuffle=True, num_workers=count)) for count in (1, 2))
    whole = epoch(one)
    assert sorted(whole[:, 0].tolist()) == list(range(12))
    assert len(set(whole[:, 1].tolist())) == len(set(whole[:, 2].tolist())) == len(set(whole[:, 3].tolist())) == 12
    assert torch.equal(epoch(two)[:, :4], whole[:, :4])
    unfinished = two.epoch(0)
    next(unfinished)
    later = epoch(two, 2)
    assert torch.equal(later[:, :4], whole[2 * (size or 1) :, :4])
    assert set(epoch(one)[:, 4].tolist()) == set(whole[:, 4].tolist())  # the same process


def test_workers_are_started_anew_for_a_data_set_that_has_changed_or_if_one_was_killed() -> None:
    rows = Rows()
    pool = WorkerPool(DataLoader(rows, 2, num_workers=1))
    first = epoch(pool)
    rows.epoch = 1
    second = epoch(pool)
    assert set(second[:, 5].tolist()) == {1.0}
    (process,) = {int(number) for number in second[:, 4].tolist()}
    os.kill(process, 9)
    assert torch.equal(epoch(pool)[:, :4], second[:, :4])
    assert torch.equal(first[:, :4], second[:, :4])
