"""A lane on the host: a recording is the work itself. All of the runner but the GPU can be tried with it anywhere."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch

from paceline.training.work_stream import WorkStream


class HostWorkStream(WorkStream):
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
