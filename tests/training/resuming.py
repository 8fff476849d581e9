"""What every training must do that is resumed from its checkpoint, whatever it is made of."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from paceline.traces import Schedule
from paceline.training import load_checkpoint, save_checkpoint


def resumed(
    make: Callable[[], Any], schedule: Schedule, folder: Path, pause: int, stop: int = 40
) -> tuple[Any, Any, Any, list[Any]]:
    """A whole run, and one that pauses and goes on from a file, checked to observe the same every five steps.

    Comes back: the whole run, the first and the second part of the other, and what the whole run observed; the state
    at the pause is in `folder / "state.pt"`.
    """
    whole, first, second = make(), make(), make()
    whole.reseed(7)
    expected = list(whole.advance(schedule, stop))
    first.reseed(7)
    seen = list(first.advance(schedule, pause))
    save_checkpoint(first.state_dict(), folder / "state.pt")
    torch.manual_seed(99)  # what others do to the global state does not matter
    random.seed(5)
    second.load_state_dict(load_checkpoint(folder / "state.pt"))
    seen += list(second.advance(schedule, stop))
    assert [s for s in seen if s[0] % 5 == 0] == [s for s in expected if s[0] % 5 == 0]
    return whole, first, second, expected
