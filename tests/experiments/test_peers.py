"""Peers spend what they may, and the figures of their report are what they say."""

import numpy as np
import pytest

from benchmarks._problems import Problem, quadratic
from experiments._peer_knobs import KNOBS
from experiments._peer_lines import CODE, _lines, lines_of
from experiments._peer_report import METHODS, figure, finals, paired, ratio

TINY = Problem("tiny", quadratic(1.0, 20), 200, 0.1, 2, network=False)


@pytest.mark.parametrize("cost", [2.3, 5])
def test_trials_of_optuna_together_take_exactly_the_budget(cost: float) -> None:
    pytest.importorskip("optuna")
    from experiments._peer_search import run_optuna

    found = run_optuna(TINY, 0, cost)
    assert found["cost"] == pytest.approx(cost)
    assert found["trials"] > found["ended"] >= 1


def test_single_runs_start_where_the_others_do() -> None:
    for package in ("dadaptation", "prodigyopt", "schedulefree"):
        pytest.importorskip(package)
    from experiments._peer_single import METHODS, run_once

    start = TINY.make(0).problem.loss(np.ones(20))  # type: ignore[attr-defined]
    for method in METHODS:
        assert run_once(TINY, f"{method} 0.5", 0)["raw"] < start  # type: ignore[operator]


def test_a_budget_of_n_runs_makes_n_runs() -> None:
    assert all(len(knobs) == budget for knob in KNOBS.values() for budget, knobs in knob.items())


def test_lines_without_docstrings_comments_and_blanks() -> None:
    source = 'def f(x):\n    """Say.\n\n    More.\n    """\n    # why\n    y = x\n\n    return y  # so\n'
    assert _lines(source, "f") == 3
    assert all(lines_of(method) > 5 for method in CODE)


def test_the_best_of_a_methods_runs_counts_where_all_are_there() -> None:
    method = "Prodigy x 2"
    rows = {("tiny", unit, 0): {"raw": value} for unit, value in zip(METHODS[method].units, (None, 2.0), strict=True)}
    rows[("tiny", METHODS[method].units[0], 1)] = {"raw": 1.0}
    assert finals(rows, method, TINY) == {0: 2.0}


def test_means_are_over_the_seeds_that_both_have() -> None:
    mine, other = {0: 2.0, 1: 4.0, 2: 9.0}, {0: 1.0, 1: 2.0, 3: 1.0}
    assert paired(mine, other) == (pytest.approx(np.log(2)), pytest.approx(0.0), 2)
    assert ratio(mine, other) == (pytest.approx(2.0), pytest.approx(0.0), 2)
    assert np.isnan(paired(mine, {0: 1.0})[0])


def test_a_figure_says_when_seeds_are_missing() -> None:
    assert figure(1.0234, 0.01, 8, 8) == "1.023 +- 0.010"
    assert figure(-0.05, 0.01, 5, 8, percent=True) == "-5.0 +- 1.0 (5)"
    assert figure(float("nan"), 0.0, 0, 8) == ""
