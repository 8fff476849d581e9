"""Runs as a family's model takes them."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import Schedule, Trace
from paceline.errors import InputError
from paceline.shapes import Linear
from paceline.strategy.multitask import Space
from paceline.strategy.multitask.preprocess_runs import preprocess_runs, schedule_on_base
from paceline.traces import LearningRateRange

SPACE = Space(LearningRateRange(0.01, 1.5), 60, 3)
STEPS = np.arange(0, 61, 4)
SOUND = Trace(STEPS, 2.0 - STEPS / 100, Schedule.constant(0.1, 60), name="a", task="a")


def test_a_run_that_failed_is_flat_over_the_interval_it_failed_in() -> None:
    diverged = replace(SOUND, values=np.where(STEPS < 30, SOUND.values, np.nan), failed=True, name="b")
    exploded = replace(SOUND, values=np.where(STEPS < 30, SOUND.values, 1e30), name="c")
    silent = replace(SOUND, values=np.full(len(STEPS), np.nan), failed=True, name="d")
    runs = {trace.name: trace for trace in preprocess_runs([SOUND, diverged, exploded, silent], SPACE)}
    assert set(runs) == {"a", "b", "c"}
    assert runs["a"].last_step == 60
    for name in "bc":
        assert not runs[name].failed
        assert runs[name].last_step == 40
        assert set(runs[name].values[runs[name].steps > 20]) == {1.8}
    assert preprocess_runs([], SPACE) == []


def test_a_signed_link_takes_runs_that_got_worse() -> None:
    exploded = replace(SOUND, values=np.where(STEPS < 30, SOUND.values, 1e30), name="c")
    (run,) = preprocess_runs([exploded], SPACE, signed=True)
    assert run.last_step == 60


def test_multipliers_of_a_base_become_rates() -> None:
    schedule = Schedule([0.1, 0.3], [0, 30, 60], 60, Linear())
    rates = schedule_on_base(replace(SOUND, schedule=schedule), SPACE)
    assert rates.tuned_base is None
    np.testing.assert_allclose(rates(np.arange(60)), schedule(np.arange(60)), rtol=1e-6)
    assert schedule_on_base(replace(SOUND, schedule=schedule), replace(SPACE, base="linear")) == schedule


def test_multipliers_of_other_bases_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected runs of 60 steps on the base Linear.* cannot be compared"):
        schedule_on_base(SOUND, replace(SPACE, base="linear"))
