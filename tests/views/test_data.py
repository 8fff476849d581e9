"""What the events of a study add up to."""

import json
from pathlib import Path

import pytest

from paceline.study import (
    Created,
    Decided,
    Dropped,
    Event,
    Failure,
    Finished,
    Interval,
    Report,
    because,
    read_journal,
)
from paceline.traces import Schedule
from paceline.views.data import Band, read, to_json

SETTINGS = {"lr": [0.001, 1.0], "steps": 100, "mode": "min", "total_steps": 180, "seed": 4}
FIRST, OTHER = Schedule([0.1], [0, 20], 100, "linear"), Schedule([0.01], [0, 20], 100, "linear")
RANKING = [{"fork": 0, "value": 1.6}, {"fork": 1, "value": 1.8}]
FORECAST = [{"fork": 2, "steps": [60, 100], "low": [0.4, 0.2], "median": [0.5, 0.3], "high": [0.6, 0.4]}]

STUDY: list[Event] = [
    Created({**SETTINGS, "strategy": {"strategy": "dynamic", "weights": "averaged", "base": {"name": "linear"}}}),
    Decided(1, 0, (because("start", rates=[0.1, 0.01]),), {}, 0.001),
    Interval(0, None, 0, 20, FIRST, 1),
    Interval(1, None, 0, 20, OTHER, 1),
    Report(0, 0, 20, (10, 20), {"raw": (2.0, 1.5), "averaged": (2.2, 1.6)}),
    Report(1, 0, 20, (10, 20), {"raw": (2.0, 1.2), "averaged": (2.4, 1.8)}),
    Decided(2, 20, (because("ranking", step=20, ranking=RANKING),), {"ranking": RANKING, "forecast": FORECAST}, 0.1),
    Dropped(1, 20, because("behind", value=1.8)),
    Interval(2, 0, 20, 100, FIRST.extend(0.05, 100), 2),
    Interval(0, None, 20, 100, FIRST.extend(0.1, 100), 2),
    Report(2, 20, 100, (60, 100), {"raw": (0.9, 0.5), "averaged": (0.8, 0.45)}),
    Report(0, 20, 60, (60,), {"raw": (float("nan"),), "averaged": (0.9,)}, Failure("not finite", step=60)),
    Decided(3, 100, (because("ended best", fork=2, value=0.45),), {}, 0.0),
    Finished(2, 100, 0.45, "averaged"),
]


def test_forks_lead_fail_and_win() -> None:
    view = read(STUDY)
    assert [fork.state for fork in view.forks] == ["failed", "dropped", "won"]
    assert [view.value(fork) for fork in view.forks] == [0.9, 1.8, 0.45]
    assert view.done_steps == 20 + 20 + 80 + 40
    assert view.best == view.fork(2)
    assert view.decisions[1].dropped == (1,)
    assert view.fork(0).failure == Failure("not finite", step=60)
    assert view.fork(1).drop == because("behind", value=1.8)


@pytest.mark.parametrize(
    ("events", "states", "going"),
    [
        (4, ["running", "running"], [0, 1]),
        (5, ["leading", "running"], [1]),
        (6, ["leading", "running"], []),
        (10, ["leading", "dropped", "running"], [0, 2]),
        (11, ["leading", "dropped", "running"], [0]),
        (12, ["failed", "dropped", "leading"], []),
    ],
)
def test_states_at_every_point_of_a_study(events: int, states: list[str], going: list[int]) -> None:
    view = read(STUDY[:events])
    assert [fork.state for fork in view.forks] == states
    assert [fork.fork for fork in view.forks if fork.stop is not None] == going


def test_a_forecast_is_the_one_that_was_journaled() -> None:
    view = read(STUDY[:10])
    assert view.fork(2).forecast == Band(100, 0.2, 0.3, 0.4)
    assert view.fork(0).forecast is None
    assert read(STUDY[:11]).fork(2).forecast is None  # it has happened


def test_a_whole_run_goes_through_the_parents() -> None:
    steps, values = read(STUDY).whole_run(2)
    assert steps == (10, 20, 60, 100)
    assert values == {"raw": (2.0, 1.5, 0.9, 0.5), "averaged": (2.2, 1.6, 0.8, 0.45)}


def test_larger_is_better_where_the_mode_says_so() -> None:
    created = STUDY[0]
    assert isinstance(created, Created)
    view = read([Created({**created.settings, "mode": "max"}), *STUDY[1:6]])
    assert view.leader == 1


def test_the_golden_journal_and_json() -> None:
    view = read(read_journal(Path(__file__).parents[1] / "golden" / "journal-1.jsonl"))
    assert [fork.state for fork in view.forks] == ["dropped", "failed"]
    assert view.best is None
    for one in (view, read(STUDY), read(STUDY[:10]), read([])):
        text = json.dumps(to_json(one), allow_nan=False)
        assert json.loads(text)["done_steps"] == one.done_steps
