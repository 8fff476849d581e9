"""Single runs of others start from the same weights."""

import numpy as np
import pytest

from benchmarks._problems import Problem, quadratic

TINY = Problem("tiny", quadratic(1.0, 20), 200, 0.1, 2, network=False)


def test_single_runs_start_where_the_others_do() -> None:
    for package in ("dadaptation", "prodigyopt", "schedulefree"):
        pytest.importorskip(package)
    from experiments._peer_single import METHODS, run_once

    start = TINY.make(0).problem.loss(np.ones(20))  # type: ignore[attr-defined]
    for method in METHODS:
        assert run_once(TINY, f"{method} 0.5", 0)["raw"] < start  # type: ignore[operator]
