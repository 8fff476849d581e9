"""Studies of format 1 are read, and continued with the same settings."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from paceline import tune_tasks, warm_start
from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy.multitask import Effort
from paceline.strategy.newtask import Thought
from paceline.study import Created, Decided, Dropped, Failure, Finished, Interval, Report, because, read_journal
from paceline.study.format1 import upgrade_event, upgrade_failure, upgrade_settings
from paceline.traces import Schedule

GOLDEN = Path(__file__).parents[1] / "golden" / "journal-1.jsonl"
LOST = "this interval cost 3 workers and was given up: died"
SCHEDULE = Schedule([0.1, 0.05], [0, 10, 20], 100, "linear")

EFFORT = Effort(outer=4, inner=4, rough=4, screened=8, starts=1, moves=1, draws=8, grid=3, sweeps=1)
THOUGHT = Thought(places=6, models=2, draws=4, grid=3, sweeps=1, climbs=1)


def quadratic(noise: float) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise, dims=20), 3, every=4)


def write_former(study: Path, look: str) -> None:
    """Settings as version 0.1.0 wrote them."""
    data = json.loads((study / "study.json").read_text())
    data["format"] = 1
    data["settings"]["strategy"]["look"] = look
    data["settings"]["strategy"]["family"]["objective"]["every"] = None
    (study / "study.json").write_text(json.dumps(data))


def test_a_setting_that_is_gone_is_left_out_only_at_the_value_that_remains() -> None:
    assert upgrade_settings({"objective": {"every": None, "mode": "min"}}) == {"objective": {"mode": "min"}}
    other = {"strategy": {"strategy": "new task", "look": "next"}}
    assert upgrade_settings(other) == {"strategy": {"strategy": "new task", "judge_by": "next"}}
    dynamic = {"strategy": {"strategy": "dynamic", "look": "final"}}
    assert upgrade_settings(dynamic) == {"strategy": {"strategy": "dynamic", "judge_by": "final"}}


def test_a_new_task_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    tasks = {name: partial(quadratic, noise) for name, noise in (("calm", 0.2), ("wild", 2.0))}
    quick = {"intervals": 2, "dims": 1, "link": "linear", "effort": EFFORT}
    tune_tasks(tasks, steps=40, lr=(0.01, 1.5), budget=2, batch=2, study=tmp_path / "family", **quick)

    def begin(study: Path):
        return warm_start(tmp_path / "family", partial(quadratic, 1.0), study=study, thought=THOUGHT)

    value = begin(tmp_path / "new").value
    shutil.copytree(tmp_path / "new", tmp_path / "other")
    write_former(tmp_path / "new", "final")
    assert begin(tmp_path / "new").value == value
    write_former(tmp_path / "other", "next")
    with pytest.raises(InputError, match="other settings"):
        begin(tmp_path / "other")


def test_the_golden_journal_of_format_1_is_read() -> None:
    events = read_journal(GOLDEN)
    report = events[5]
    assert isinstance(report, Report)
    assert (report.fork, report.start, report.stop, report.steps) == (1, 10, 15, (12, 15))
    assert report.failure == Failure("raised", "the value is not finite")
    assert [event for i, event in enumerate(events) if i != 5] == [
        Created({"lr": [1e-4, 1e-1], "steps": 100}),
        Decided(
            1,
            0,
            (because("text", text="two forks start"),),
            {"proposals": 1, "ranking": [{"fork": 0, "value": 1.5}]},
            0.001,
        ),
        Interval(0, None, 0, 10, Schedule.constant(0.1, 100), 1),
        Report(0, 0, 10, (5, 10), {"raw": (2.5, 2.25), "averaged": (2.6, 2.3)}),
        Interval(1, 0, 10, 20, SCHEDULE, 2),
        Dropped(0, 20, because("text", text="behind")),
        Finished(None, 100, None, "raw"),
    ]


def test_a_clone_has_no_line_of_its_own_any_more() -> None:
    assert upgrade_event({"event": "cloned", "fork": 1, "parent": 0, "step": 10}) is None


@pytest.mark.parametrize(
    ("sentence", "failure"),
    [
        ("the value at step 1,200 is not finite", Failure("not finite", step=1200)),
        (
            "this interval cost 3 workers and was given up: died",
            Failure("lost", "this interval cost 3 workers and was given up: died"),
        ),
        ("ValueError: bad (train.py, line 3)", Failure("raised", "ValueError: bad (train.py, line 3)")),
    ],
)
def test_failures_get_a_kind(sentence: str, failure: Failure) -> None:
    assert Failure.from_json(upgrade_failure(sentence)) == failure
