"""The pool has as many recorded trainings as are wanted and fit, and they share their data."""

import gc
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.errors import TrainingError
from paceline.runner.streams.pool import RecordingPool
from paceline.training import CudaWorkStream, DeviceBatches, NotRecordableError, TorchTraining
from tests.training.example_trainings import device_digits, small_network
from tests.training.host_stream import HostWorkStream


def with_room_for(count: int) -> type[HostWorkStream]:
    """A kind of work stream of which only so many fit into memory at a time."""

    class Limited(HostWorkStream):
        room = count

        def __init__(self, device: torch.device) -> None:
            gc.collect()  # recorded trainings refer to themselves
            if Limited.room == 0:
                raise torch.OutOfMemoryError("CUDA out of memory")
            Limited.room -= 1

        def __del__(self) -> None:
            Limited.room += 1

    return Limited


def pool(*factories, make_stream=HostWorkStream, forks: int | None = None) -> RecordingPool:
    return RecordingPool(factories or (device_digits,), make_stream, forks)


def sizes(pool: RecordingPool) -> dict[int, int]:
    return {task: len(pool.of_task(task)) for task in range(3) if pool.of_task(task)}


def test_each_fork_has_one_and_none_is_made_twice() -> None:
    recordings = pool()
    recordings.fill(Counter({0: 2}))
    first = recordings.of_task(0)
    recordings.fill(Counter({0: 3}))
    assert recordings.of_task(0)[:2] == first
    assert len(recordings) == 3
    recordings.clear()
    assert len(recordings) == 0


def test_a_number_of_forks_is_shared_evenly_between_tasks() -> None:
    recordings = pool(*[device_digits] * 3, forks=3)
    recordings.fill(Counter({0: 4, 1: 2, 2: 2}))
    assert sizes(recordings) == {0: 1, 1: 1, 2: 1}


def test_what_does_not_fit_waits_for_its_turn() -> None:
    recordings = pool(make_stream=with_room_for(3))
    message = r"3 of 8 forks fit into the GPU's memory at a time, .* each: the others wait for their turn"
    with pytest.warns(UserWarning, match=message):
        recordings.fill(Counter({0: 8}))
    recordings.fill(Counter({0: 8}))  # the warning comes once
    assert len(recordings) == 3


def test_a_number_that_was_asked_for_must_fit() -> None:
    with pytest.raises(TrainingError, match=r"3 of 5 forks fit .* and 5 were asked for: ask for 3, or leave forks out"):
        pool(make_stream=with_room_for(3), forks=5).fill(Counter({0: 5}))
    with pytest.raises(TrainingError, match="not one fork fits into the GPU's memory"):
        pool(make_stream=with_room_for(0)).fill(Counter({0: 5}))


def test_an_idle_task_makes_room_for_another() -> None:
    recordings = pool(device_digits, device_digits, make_stream=with_room_for(2))
    recordings.fill(Counter({0: 2}))
    kept, path = recordings.of_task(0)[0], Path("0-20.pt")
    recordings.loaded[path] = kept
    del kept
    recordings.fill(Counter({1: 2}))
    assert sizes(recordings) == {1: 2}
    assert path not in recordings.loaded


def digits_with(rows: torch.Tensor) -> TorchTraining:
    training = device_digits()
    training.batches.source = DeviceBatches(rows, torch.zeros(len(rows), dtype=torch.long), size=32)
    return training


def tables(recordings: RecordingPool) -> set[int]:
    return {recorded.batches.tensors[0].data_ptr() for recorded in recordings.of_task(0)}


def test_data_that_a_factory_draws_anew_is_equal_and_kept_once() -> None:
    recordings = pool(lambda: digits_with(torch.randn(64, 1, 8, 8)))
    recordings.fill(Counter({0: 3}))
    assert len(tables(recordings)) == 1


def test_data_that_differs_from_fork_to_fork_is_reported() -> None:
    rng = np.random.default_rng()
    recordings = pool(lambda: digits_with(torch.tensor(rng.normal(size=(64, 1, 8, 8))).float()))
    with pytest.warns(UserWarning, match="makes different data each time it is called"):
        recordings.fill(Counter({0: 2}))
    assert len(tables(recordings)) == 2


def test_the_first_call_of_a_factory_draws_from_the_global_state_and_later_ones_do_not() -> None:
    drawn = list[float]()

    def factory() -> TorchTraining:
        drawn.append(float(torch.rand(())))
        return device_digits()

    torch.manual_seed(5)
    expected = float(torch.rand(()))
    torch.manual_seed(5)
    pool(factory).fill(Counter({0: 1}))
    recordings = pool(factory)
    torch.manual_seed(5)
    recordings.fill(Counter({0: 1}))
    state = torch.get_rng_state()
    recordings.fill(Counter({0: 3}))
    assert drawn == [expected] * 4
    assert torch.equal(torch.get_rng_state(), state)


def test_what_cannot_be_recorded_is_refused() -> None:
    with pytest.raises(NotRecordableError, match="its batches come from the host"):
        pool(small_network).fill(Counter({0: 1}))
    with pytest.raises(NotRecordableError, match="the model is on the cpu, which is not a GPU"):
        pool(make_stream=CudaWorkStream).fill(Counter({0: 1}))
