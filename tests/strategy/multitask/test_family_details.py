"""What a decision about a family records for views."""

import json

import numpy as np
import pytest

from paceline import Objective, Trace, TraceModel
from paceline.strategy import Goal, History
from paceline.strategy.multitask import InfillChoice, Run, Space
from paceline.strategy.multitask.family_details import (
    answer_details,
    embedding_details,
    final_forecasts,
    infill_details,
    rate_numbers,
)
from paceline.study import Interval
from tests.strategy.multitask.drawn_runs import BOUNDS, SPACE, TASKS, drawn_family

X = (0.1, 0.9, 0.4, 0.5, 0.7)
INTERVALS = tuple(Interval(7 + i, None, 0, 200, SPACE.schedule(X), 1, i) for i in range(2))
HISTORY = History(Goal(BOUNDS, 200, Objective(weights="averaged"), tasks=TASKS))


def test_rates_are_multipliers_if_there_is_a_base() -> None:
    rates = rate_numbers(SPACE, X)
    assert rates["rates"] == pytest.approx(BOUNDS.from_unit(np.array(X)).tolist())
    assert rates["multipliers"] is False
    assert rate_numbers(Space(BOUNDS, 200, 5, "linear"), X)["multipliers"] is True


def test_a_forecast_names_the_fork_and_the_weights(small_model: TraceModel) -> None:
    bands = final_forecasts(small_model, HISTORY, INTERVALS)
    assert [(band["fork"], band["weights"], band["steps"]) for band in bands] == [
        (7, "averaged", [200]),
        (8, "averaged", [200]),
    ]
    assert all(band["low"] <= band["median"] <= band["high"] for band in bands)


def test_what_was_expected_of_each_run(small_model: TraceModel) -> None:
    choice = InfillChoice(Run("b", X), small_model.posterior.hyper.embedding, 0.5, 0.25, {"a": 0.3, "b": 0.25}, 10)
    (row,) = infill_details(INTERVALS[:1], [choice])
    assert row == {"fork": 7, "before": 0.5, "after": 0.25, "rivals": {"a": 0.3, "b": 0.25}}


def test_an_answer_has_its_schedule_and_counts_runs(small_model: TraceModel, two_runs: list[Trace]) -> None:
    family = drawn_family()
    answer = family.answers(small_model, two_runs)["a"]
    row = answer_details("a", answer, two_runs)
    assert row["schedule"] == answer.schedule.to_json()
    assert row["low"] <= row["median"] <= row["high"]
    assert (row["task"], row["runs"], row["failed"]) == ("a", 2, 0)
    json.dumps(row)


def test_the_embedding_is_in_the_order_of_the_family(small_model: TraceModel) -> None:
    rows = embedding_details(drawn_family(tasks=("c", "a", "b")), small_model)
    assert [row["task"] for row in rows] == ["c", "a", "b"]
    assert rows[0]["at"] == pytest.approx(small_model.task_embedding["c"].tolist(), rel=1e-5)
