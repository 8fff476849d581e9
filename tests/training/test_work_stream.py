"""Work streams: what all have in common, and CUDA's on a GPU."""

import pytest
import torch

from paceline.training import CudaWorkStream, WorkStream
from tests.training.host_stream import HostWorkStream

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


def test_a_stream_must_say_how_it_does_everything() -> None:
    with pytest.raises(TypeError, match="abstract"):
        WorkStream()
    assert not HostWorkStream.__abstractmethods__
    assert not CudaWorkStream.__abstractmethods__


@on_a_gpu
def test_a_recording_is_not_run_and_repeats_the_work_on_the_device(device: torch.device) -> None:
    stream, calls = CudaWorkStream(device), []
    count = torch.zeros((), device=device)

    def work() -> None:
        calls.append(1)
        count.add_(1)

    with stream.activate():
        work()
    stream.synchronize()
    replay = stream.record(work)
    assert int(count) == 1
    for _ in range(3):
        replay()
    stream.synchronize()
    assert int(count) == 4
    assert len(calls) == 2


@on_a_gpu
def test_waiting_for_the_device_is_forbidden_inside_the_block_only(device: torch.device) -> None:
    stream, number = CudaWorkStream(device), torch.ones((), device=device)
    with pytest.raises(RuntimeError, match="synchronizing"), stream.activate(), stream.forbid_sync():
        number.item()
    assert number.item() == 1


@on_a_gpu
def test_each_stream_has_its_own_random_numbers(device: torch.device) -> None:
    first, second = CudaWorkStream(device), CudaWorkStream(device)
    second.set_random_state(first.random_state())
    outside = torch.cuda.get_rng_state(device)
    drawn = []
    for stream in (first, second, first):
        with stream.activate():
            drawn.append(torch.rand(3, device=device).tolist())
    assert drawn[0] == drawn[1] != drawn[2]
    assert torch.equal(torch.cuda.get_rng_state(device), outside)
    second.set_random_state({})  # a state that was made without a GPU
    with second.activate():
        assert torch.rand(3, device=device).tolist() == drawn[2]
