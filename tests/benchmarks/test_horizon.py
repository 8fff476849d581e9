"""The comparison of tuners: every method has a strategy, costs are counted, and the published rows are complete."""

import numpy as np
import pytest

from benchmarks import horizon
from benchmarks._oracle import oracle
from benchmarks._problems import PROBLEMS, Problem, quadratic
from benchmarks._runs import RESULTS, load
from paceline.strategy import Dynamic

TINY = Problem("tiny", quadratic(1.0, 20), 200, 0.1, 2, network=False)


def test_a_study_is_charged_for_the_steps_of_all_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROBLEMS, "tiny", TINY)
    row = horizon.study("tiny", horizon.METHODS["horizon 2.3, blind"](), 0)
    assert 2.0 < row["cost"] <= 2.3
    assert np.isfinite(row["raw"])


def test_the_model_chooses_rates_only_where_it_is_asked_to() -> None:
    assert horizon.by_model(5).chooser.name == "model quantile"
    assert Dynamic.horizon(cost=5).chooser.name == "fixed factor"


def test_every_method_has_a_published_row_for_every_seed() -> None:
    rows = load(RESULTS / "horizon.jsonl")
    missing = [
        (problem.name, method, seed)
        for problem in PROBLEMS.values()
        for method in ("hindsight", *horizon.METHODS)
        for seed in range(problem.seeds)
        if (problem.name, method, seed) not in rows
    ]
    assert missing == []


def test_the_oracle_knows_the_expected_loss() -> None:
    strategy = oracle("quadratic 1", 5)
    assert strategy.judge_by == "final"
    assert strategy.to_json()["plan"] == Dynamic.horizon(cost=5, judge_by="final").to_json()["plan"]
