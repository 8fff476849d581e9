"""Work streams without a GPU, so that recorded trainings and the streams runner can be tested anywhere."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch

from paceline.training import WorkStream
from tests.training.example_trainings import CountingOptimizer


class HostWorkStream(WorkStream):
    """Does work at once. A recording of work is the work itself."""

    def __init__(self, device: torch.device) -> None: ...

    @contextmanager
    def activate(self) -> Generator[None]:
        yield

    @contextmanager
    def forbid_sync(self) -> Generator[None]:
        yield

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        return work

    def wait_for(self, other: WorkStream) -> None: ...

    def synchronize(self) -> None: ...

    def random_state(self) -> dict[str, Any]:
        return {}

    def set_random_state(self, state: dict[str, Any]) -> None: ...


class DeviceOnlyReplay(HostWorkStream):
    """Replays everything except the steps of `CountingOptimizer`: as a CUDA graph, it does not run what Python did."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        def replay() -> None:
            step = CountingOptimizer.step
            CountingOptimizer.step = lambda self, closure=None: None
            try:
                work()
            finally:
                CountingOptimizer.step = step

        return replay
