from pathlib import Path

from paceline.study import (
    Created,
    Decided,
    Finished,
    Interval,
    Journal,
    Report,
    Study,
    write_settings,
)
from paceline.traces import Schedule

SCHEDULE = Schedule.constant(0.1, 20)
EVENTS = [
    Created({"mode": "min"}),
    Decided(1, 0),
    Interval(0, None, 0, 20, SCHEDULE, 1),
    Report(0, 0, 20, (10, 20), {"raw": (3.0, 2.0), "averaged": (2.5, 1.5)}),
    Finished(0, 20, 1.5, "averaged"),
]


def opened(folder: Path, count: int) -> Study:
    write_settings(folder, {"mode": "min"}, 0)
    with Journal(folder) as journal:
        journal.append(*EVENTS[:count])
    return Study.open(folder)


def test_a_study_holds_its_events_by_kind(tmp_path: Path) -> None:
    study = opened(tmp_path, 5)
    assert study.decisions == [EVENTS[1]]
    assert study.intervals == [EVENTS[2]]
    assert study.reports == [EVENTS[3]]
    assert study.finished == EVENTS[4]
    assert study.state is study.state
    assert study.checkpoint(0, 20) == tmp_path / "checkpoints" / "0-20.pt"
    assert (study.tasks, study.answers, study.best, study.embedding) == ((), {}, {}, {})


def test_its_traces_are_of_raw_weights_unless_others_are_asked_for(tmp_path: Path) -> None:
    study = opened(tmp_path, 4)
    assert study.finished is None
    assert study.traces()[0].values.tolist() == [3.0, 2.0]
    assert study.traces("averaged")[0].values.tolist() == [2.5, 1.5]


def test_it_prints_in_one_line(tmp_path: Path) -> None:
    assert repr(opened(tmp_path, 4)) == f"Study({str(tmp_path)!r}, 4 events, not over)"
