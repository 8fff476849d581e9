"""Numbers in the report of the peers, and the published report."""

import sys

import numpy as np
import pytest

from benchmarks import _report
from benchmarks._problems import Problem, quadratic
from experiments import peers
from experiments._peer_report import METHODS, figure, finals, paired, ratio

TINY = Problem("tiny", quadratic(1.0, 20), 200, 0.1, 2, network=False)


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


def test_the_published_report_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    published = (peers.RESULTS / "peers.txt").read_text()
    monkeypatch.setattr(sys, "argv", ["peers", "--report"])
    monkeypatch.setattr(_report, "_results", [])
    peers.main()
    assert capsys.readouterr().out == published
    assert (peers.RESULTS / "peers.txt").read_text() == published
