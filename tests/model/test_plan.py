"""Plans stay where runs were seen to work."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.model import TraceModel
from paceline.model.law.plan import rise, shortest_warmup
from paceline.shapes import WarmupStableDecay
from paceline.traces import Schedule, Trace

STEPS = np.arange(10, 401, 10)
GOOD = [Trace(STEPS, 1 + (lr * STEPS) ** -0.5, Schedule.constant(lr, 400), name=str(lr)) for lr in (0.003, 0.03)]


def too_high(values: list[float], **fields: bool) -> Trace:
    return Trace(STEPS[: len(values)], np.array(values), Schedule.constant(3.0, 400), name="too high", **fields)


@pytest.mark.parametrize(
    "bad",
    [
        too_high([2.0, 5.0, np.nan], failed=True),
        too_high([np.nan], failed=True),
        too_high([2.0, 5.0, 20.0, 90.0]),  # finite, and yet no rate to plan with
    ],
    ids=["diverged", "at once", "worse than at first"],
)
def test_a_rate_at_which_a_run_came_apart_is_not_planned(bad: Trace) -> None:
    plan = TraceModel.fit([*GOOD, bad], mean="law").plan(steps=400, lr=(1e-3, 10.0))
    assert plan.schedule.multipliers.max() <= 1.25 * 0.03


def test_where_no_run_worked_the_plan_is_a_decade_lower() -> None:
    model = TraceModel.fit([too_high([2.0, 1.9, np.nan], failed=True)], mean="law")
    assert model.plan(steps=400, lr=(1e-3, 10.0)).schedule.multipliers.max() <= 1.25 * 0.3
    with pytest.raises(
        InputError, match=r"lowest rate to plan with is 1, .* worked at rates up to 0.3: lower the bound"
    ):
        model.plan(steps=400, lr=(1.0, 10.0))


def test_a_fork_that_was_dropped_early_is_no_proof_of_its_rate() -> None:
    short = Trace(STEPS[:10], 1 + (0.5 * STEPS[:10]) ** -0.5, Schedule.constant(0.5, 400), name="short")
    assert TraceModel.fit([*GOOD, short], mean="law").plan(steps=400, lr=(1e-3, 10.0)).schedule(0) <= 1.25 * 0.03


@pytest.mark.parametrize("family", ["shape", "free"])
def test_a_plan_rises_no_faster_than_was_seen(family: str) -> None:
    slow = Schedule.of(WarmupStableDecay(warmup=0.2), 0.03, 400)
    runs = [GOOD[0], Trace(STEPS, 1 + np.cumsum(slow(STEPS)) ** -0.5, slow, name="slow")]
    plan = TraceModel.fit(runs, mean="law").plan(steps=400, lr=(1e-3, 0.03), family=family).schedule
    assert shortest_warmup(runs) == pytest.approx(0.18, abs=0.01)
    assert isinstance(plan.base, WarmupStableDecay)
    assert plan.base.warmup >= 0.17
    assert plan(399) > 0
    fast = TraceModel.fit(GOOD, mean="law").plan(steps=400, lr=(1e-3, 0.03), family=family).schedule
    assert rise(fast, 400) < 0.02
