"""Rows of long logs: the state at some of the steps stands for all, at a cost that no longer grows."""

import numpy as np
import pytest

from paceline.model.law import rows
from paceline.model.law.rows import Units, rows_of, thinned
from paceline.traces import Schedule, Trace


def test_a_long_log_has_the_rows_that_all_of_its_steps_would_give(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, schedule = np.arange(1, 3001), Schedule([0.1, 0.01], [0, 1500, 3000], base="cosine")
    run = Trace(steps, 1 + (1 + np.cumsum(schedule(steps))) ** -0.5, schedule)
    units = Units.of([run])
    few = rows_of([run], units, ())
    monkeypatch.setattr(rows, "thinned", lambda stretch: np.arange(len(stretch)))
    every = rows_of([run], units, ())
    assert few is not None
    assert every is not None
    assert few.loss.tolist() == every.loss.tolist()
    assert few.log10_lr == pytest.approx(every.log10_lr)
    assert few.rate_sum.numpy() == pytest.approx(every.rate_sum.numpy(), rel=3e-3)
    assert few.modes.numpy() == pytest.approx(every.modes.numpy(), rel=2e-2, abs=1e-3)


def test_thinning_keeps_the_ends_of_each_stretch() -> None:
    stretch = np.repeat([0, 1, 2], [1, 10, 1000])
    assert thinned(stretch, 1011).tolist() == list(range(1011))
    some = thinned(stretch, 30)
    assert len(some) <= 30
    assert {0, 1, 10, 11, 1010} <= set(some.tolist())
    assert thinned(stretch, 2).tolist() == [0, 1, 11]
