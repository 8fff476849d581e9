from pathlib import Path

from paceline.study import Checkpoints, Interval
from paceline.traces import Schedule


def test_files_are_named_by_fork_and_step() -> None:
    checkpoints, schedule = Checkpoints.of_study(Path("runs") / "first"), Schedule.constant(0.1, 100)
    clone = Interval(4, 3, 10, 20, schedule, 2)
    assert checkpoints.origin(clone) == Path("runs/first/checkpoints/3-10.pt")
    assert checkpoints.target(clone) == Path("runs/first/checkpoints/4-20.pt")
    assert checkpoints.origin(Interval(1, None, 0, 10, schedule, 1, task=7)).name == "7-0.pt"
