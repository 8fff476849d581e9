"""Where the work of one fork is queued: a stream of its own, random numbers of its own, and recordings of work.

Only what differs between a GPU and anything else is here; what a fork does is in `captured`.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class Lane(ABC):
    """A queue of work on a device; work in one lane keeps its order, lanes run side by side."""

    @abstractmethod
    @contextmanager
    def entered(self) -> Generator[None]:
        """Queue what is done inside here, with the lane's random numbers."""
        yield

    @abstractmethod
    @contextmanager
    def unwaiting(self) -> Generator[None]:
        """Let work fail inside here, where it would have the host wait for the device: that cannot be recorded."""
        yield

    @abstractmethod
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """What queues the same work again, without going through its Python; the work is not done now."""

    @abstractmethod
    def wait_for(self, other: "Lane") -> None:
        """Let what is queued next wait for what the other lane has queued so far."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until everything queued is done."""

    @abstractmethod
    def random_state(self) -> dict[str, Any]:
        """The lane's part of a fork's random state."""

    @abstractmethod
    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from a fork's random state."""


class CudaLane(Lane):
    """A CUDA stream; work is recorded as a CUDA graph in memory of its own."""

    def __init__(self, device: torch.device) -> None:
        self._index = device.index
        self._stream = torch.cuda.Stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))  # which built what will be used here
        self._generator = torch.cuda.default_generators[self._index].clone_state()
        self._pool: Any = None

    @contextmanager
    def entered(self) -> Generator[None]:
        """Make the stream the current one, and its generator the default one."""
        default = torch.cuda.default_generators[self._index]
        kept = default.graphsafe_get_state()
        with torch.cuda.stream(self._stream):
            default.graphsafe_set_state(self._generator)
            try:
                yield
            finally:
                default.graphsafe_set_state(kept)

    @contextmanager
    def unwaiting(self) -> Generator[None]:
        """Ask torch to refuse what waits; a capture that breaks off in the middle would cost memory for good."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it may not notice everything; the capture itself would
            torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Capture the work as a graph; those of one lane share memory, since they never run at the same time."""
        graph = torch.cuda.CUDAGraph()
        with self.entered(), torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            work()
        self._pool = graph.pool()

        def replay() -> None:
            with torch.cuda.stream(self._stream):
                graph.replay()

        return replay

    def wait_for(self, other: Lane) -> None:
        """Wait on the device; the host goes on."""
        assert isinstance(other, CudaLane)
        self._stream.wait_stream(other._stream)

    def finish(self) -> None:
        """Wait on the host."""
        self._stream.synchronize()

    def random_state(self) -> dict[str, Any]:
        """States of all GPUs' generators, this one's from the lane."""
        states: list[Tensor] = torch.cuda.get_rng_state_all()
        states[self._index] = self._generator.get_state()
        return {"cuda": states}

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Go on from there; a state that was made without a GPU says nothing about it."""
        states = state.get("cuda")
        if states:
            self._generator.set_state(states[self._index if self._index < len(states) else 0].clone())
