"""The queue of one fork's work on a device, with its own random numbers, and recordings of work.

This module has everything that differs between a GPU and other devices. `recorded_training` is the same for all.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class WorkStream(ABC):
    """A queue of work on a device. Work in one stream keeps its order; several streams run side by side."""

    @abstractmethod
    @contextmanager
    def activate(self) -> Generator[None]:
        """Queue the work inside the block here, with this stream's random numbers."""
        yield

    @abstractmethod
    @contextmanager
    def forbid_sync(self) -> Generator[None]:
        """Raise an error inside the block when the host would wait for the device, which cannot be recorded."""
        yield

    @abstractmethod
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record work without doing it. Returns a function that queues it again without running its Python."""

    @abstractmethod
    def wait_for(self, other: "WorkStream") -> None:
        """Let later work here start only after everything queued in the other stream so far."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait on the host until all queued work is done."""

    @abstractmethod
    def random_state(self) -> dict[str, Any]:
        """This stream's part of a fork's random state."""

    @abstractmethod
    def set_random_state(self, state: dict[str, Any]) -> None:
        """Continue from a fork's random state."""


class CudaWorkStream(WorkStream):
    """A CUDA stream. Work is recorded as a CUDA graph, in memory of its own."""

    def __init__(self, device: torch.device) -> None:
        self._index = device.index
        self._stream = torch.cuda.Stream(device)
        self._stream.wait_stream(torch.cuda.current_stream(device))  # it made the tensors that are used here
        self._generator = torch.cuda.default_generators[self._index].clone_state()
        self._pool: Any = None

    @contextmanager
    def activate(self) -> Generator[None]:
        """Make this the current stream, and its generator the default one."""
        default = torch.cuda.default_generators[self._index]
        outside = default.graphsafe_get_state()
        with torch.cuda.stream(self._stream):
            default.graphsafe_set_state(self._generator)
            try:
                yield
            finally:
                default.graphsafe_set_state(outside)

    @contextmanager
    def forbid_sync(self) -> Generator[None]:
        """Have torch raise on synchronisation. A capture that fails midway would leak memory for good."""
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that it may miss some; the capture itself finds the rest
            torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Capture the work as a graph. Graphs of one stream share memory, since they never run at the same time."""
        graph = torch.cuda.CUDAGraph()
        with self.activate(), torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            work()
        self._pool = graph.pool()

        def replay() -> None:
            with torch.cuda.stream(self._stream):
                graph.replay()

        return replay

    def wait_for(self, other: WorkStream) -> None:
        """Wait on the device; the host goes on."""
        assert isinstance(other, CudaWorkStream)
        self._stream.wait_stream(other._stream)

    def synchronize(self) -> None:
        """Wait on the host."""
        self._stream.synchronize()

    def random_state(self) -> dict[str, Any]:
        """The states of all GPUs' generators, with this stream's in place of its GPU's."""
        states: list[Tensor] = torch.cuda.get_rng_state_all()
        states[self._index] = self._generator.get_state()
        return {"cuda": states}

    def set_random_state(self, state: dict[str, Any]) -> None:
        """Continue from a state. One that was made without a GPU leaves the generator as it is."""
        states = state.get("cuda")
        if states:
            self._generator.set_state(states[self._index if self._index < len(states) else 0].clone())
