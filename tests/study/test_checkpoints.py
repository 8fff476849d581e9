from pathlib import Path

from paceline.study import Checkpoints, Interval, state_named
from paceline.traces import Schedule


def test_files_are_named_by_fork_and_step() -> None:
    checkpoints, schedule = Checkpoints.of_study(Path("runs") / "first"), Schedule.constant(0.1, 100)
    clone = Interval(4, 3, 10, 20, schedule, 2)
    assert checkpoints.origin(clone) == Path("runs/first/checkpoints/3-10.pt")
    assert checkpoints.target(clone) == Path("runs/first/checkpoints/4-20.pt")
    assert checkpoints.origin(Interval(1, None, 0, 10, schedule, 1, task=7)).name == "7-0.pt"


def test_only_names_of_checkpoints_and_of_unfinished_ones_are_read() -> None:
    assert [state_named(f"3-40.pt{end}") for end in ("", ".tmp", ".0a9f.tmp")] == [(3, 40)] * 3
    for name in (
        "best.pt",
        "3-40.ckpt",
        "03-40.pt",
        "3-40.pt.bak",
        "../3-40.pt",
        "3-40.pt\n",
        "-3-40.pt",
        "3-40.pt.x.tmp",
    ):
        assert state_named(name) is None


def test_the_files_of_checkpoints_are_listed_by_state(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    assert list(checkpoints.files()) == []
    checkpoints.folder.mkdir()
    for name in ("3-40.pt", "0-0.pt.tmp", "best.ckpt"):
        (checkpoints.folder / name).touch()
    assert [state for state, _ in checkpoints.files()] == [(0, 0), (3, 40)]
