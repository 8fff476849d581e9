"""Runs as rows: means over stretches, interpolation in g, and long logs."""

import numpy as np
import pytest

from paceline import Schedule, Trace
from paceline.model.law import rows as rows_module
from paceline.model.law.rows import NODES, interpolation_weights, rows_of, runs_with_rows
from paceline.model.law.settings import FORM
from paceline.model.law.units import Units
from tests.model.law import example_law


@pytest.mark.parametrize("g", [FORM.g_low, 0.33, 0.85, float(NODES[4]), float(NODES[4]) + 1e-13, 1.79, FORM.g_high])
def test_weights_interpolate(g: float) -> None:
    w = interpolation_weights(g)
    assert w.sum() == pytest.approx(1)
    for degree in range(len(NODES)):
        assert w @ NODES**degree == pytest.approx(g**degree)
    for rate in (1e-3, 0.1, 1.0):  # what is interpolated: a rate over the largest, to the power g
        assert w @ rate**NODES == pytest.approx(rate**g, abs=1e-5)


def test_rows_are_means_and_say_how_far_runs_are_behind() -> None:
    runs = example_law.runs(3)
    units = Units.of(runs)
    rows = rows_of(runs, units, ())
    assert rows is not None
    count = (rows.single_noise / rows.noise) ** 2  # observations behind a row
    assert count.sum() == pytest.approx(sum(len(run.steps) for run in runs))
    for number, run in enumerate(runs):
        own = rows.run == number
        assert rows.loss[own] @ count[own] == pytest.approx(run.values.sum())
    last = [rows.behind[rows.run == number][-1] for number in range(3)]
    assert min(last) == 1.0
    assert last[0] > 1.1  # the run at the lowest rate


def test_thinning_a_long_log_hardly_changes_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, schedule = np.arange(1, 3001), Schedule([0.1, 0.01], [0, 1500, 3000], base="cosine")
    run = Trace(steps, 1 + (1 + np.cumsum(schedule(steps))) ** -0.5, schedule)
    units = Units.of([run])
    few = rows_of([run], units, ())
    monkeypatch.setattr(rows_module, "thin", lambda stretch: np.arange(len(stretch)))
    every = rows_of([run], units, ())
    assert few is not None
    assert every is not None
    assert few.loss.tolist() == every.loss.tolist()
    assert few.log10_lr == pytest.approx(every.log10_lr)
    assert few.rate_sum.numpy() == pytest.approx(every.rate_sum.numpy(), rel=3e-3)
    assert few.modes.numpy() == pytest.approx(every.modes.numpy(), rel=2e-2, abs=1e-3)


def test_only_runs_with_observations_have_rows() -> None:
    run, empty = example_law.runs(1)[0], Trace(np.array([0]), np.array([3.0]), Schedule.constant(0.1, 1000))
    units = Units.of([run])
    assert runs_with_rows([run, empty], units) == [run]
    assert rows_of([empty], units, ()) is None
