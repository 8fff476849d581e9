"""Planning: gradients, bounds, runs that are continued, and that a plan is as good as the law allows."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import check_grad

from paceline import InputError, LearningRateRange, Objective, Schedule, Trace
from paceline.model.law import Caveat, LawModel, shortest_warmup
from paceline.model.law.plan import final_loss
from paceline.model.law.schedule_families import DecayShapes, IntervalRates, ScheduleFamily
from paceline.model.law.settings import PLAN
from paceline.model.law.stability import warmup_share
from paceline.model.law.state import SchedulePieces
from paceline.shapes import HOLD_THEN_DECAY, Constant, WarmupStableDecay
from tests.model.law import example_law

BOUNDS = LearningRateRange(1e-3, 0.1)
POINTS = np.array([0, 250, 500, 750, 1000])
STEPS = np.arange(10, 401, 10)
GOOD = [Trace(STEPS, 1 + (lr * STEPS) ** -0.5, Schedule.constant(lr, 400), name=str(lr)) for lr in (0.003, 0.03)]


@cache
def fitted() -> LawModel:
    return LawModel.fit(example_law.runs())


@cache
def half_run() -> Trace:
    return example_law.run(Schedule.of("linear", 0.05, 1000), seed=4, until=500, name="half")


def families() -> dict[str, tuple[ScheduleFamily, Trace | None]]:
    ahead = np.array([500, 700, 1000])
    return {
        "shape": (DecayShapes(BOUNDS, 1000), None),
        "multipliers": (IntervalRates(BOUNDS, 1000, HOLD_THEN_DECAY, POINTS, None), None),
        "free": (IntervalRates(BOUNDS, 1000, Constant(), POINTS, None), None),
        "continued": (IntervalRates(BOUNDS, 1000, Constant(), ahead, half_run().schedule), half_run()),
    }


@pytest.mark.parametrize("order", [0.3, 0.5])
@pytest.mark.parametrize("name", list(families()))
def test_gradients_are_right(name: str, order: float) -> None:
    family, start = families()[name]
    value, rng = final_loss(fitted(), family, 1000, start, 0, order), np.random.default_rng(0)
    for _ in range(3):
        x = rng.uniform(0.1, 0.9, len(family.starts()[0]))
        size = np.linalg.norm(value(x)[1])
        assert check_grad(lambda x: value(x)[0], lambda x: value(x)[1], x, epsilon=1e-7) < 1e-3 * size


@pytest.mark.parametrize("name", list(families()))
def test_what_is_optimised_is_what_the_schedule_does(name: str) -> None:
    family, start = families()[name]
    value = final_loss(fitted(), family, 1000, start, 0, 0.5)
    for x in family.starts():
        schedule = family.schedule(np.array(x))
        law = fitted().law_at(SchedulePieces.of(schedule, np.arange(20, 1001, 20)), 0)[:, -1].numpy()
        assert value(np.array(x))[0] == pytest.approx(np.median(np.log(law)), abs=0.01)


@pytest.mark.parametrize("family", ["shape", "multipliers", "free"])
def test_a_plan_beats_the_runs_and_stays_within_the_bounds(family: str) -> None:
    plan = fitted().plan(steps=1000, lr=(1e-3, 0.08), family=family)
    rates = plan.schedule(np.arange(1000))
    assert plan.schedule.steps == 1000
    assert rates.max() <= 0.08 * (1 + 1e-9)
    if family == "free":
        assert rates.min() >= 1e-3 * (1 - 1e-9)
    truth = example_law.loss(plan.schedule, np.array([1000]))[0]
    others = [example_law.loss(run.schedule, run.steps)[-1] for run in example_law.runs()]
    others += [
        example_law.loss(Schedule.of(shape, 0.08, 1000), np.array([1000]))[0] for shape in ("constant", "cosine")
    ]
    assert truth < min(others) + 0.005
    assert plan.forecast.steps[-1] == 1000
    low, high = plan.forecast.band(0.9)
    assert low[-1] < truth < high[-1]
    assert (plan.family, plan.quantile, plan.caveats) == (family, 0.5, ())


def test_a_plan_stays_below_the_highest_stable_rate() -> None:
    plan = fitted().plan(steps=1000, lr=(1e-3, 10.0), family="free", intervals=5)
    assert plan.schedule(np.arange(1000)).max() <= PLAN.above * 0.1 * (1 + 1e-9)


@pytest.mark.parametrize("family", ["multipliers", "free"])
@pytest.mark.parametrize("steps", [1000, 1500])
def test_a_plan_continues_a_run(family: str, steps: int) -> None:
    start, at = half_run(), np.arange(500)
    plan = fitted().plan(steps=steps, lr=(1e-3, 0.1), start=start, family=family, intervals=4)
    np.testing.assert_allclose(plan.schedule(at), start.schedule(at), rtol=0.01)
    assert plan.schedule.steps == steps
    assert plan.forecast.steps[0] > 500
    unchanged = start.schedule if steps == 1000 else Schedule.of("linear", 0.05, steps)
    best = fitted().final([plan.schedule, unchanged], start=start)
    assert np.median(best[:, 0]) < np.median(best[:, 1]) + 0.005


def test_a_run_that_has_not_begun_is_planned_from_its_first_step() -> None:
    begun = Trace(np.array([0]), np.array([5.0]), Schedule.constant(0.01, 1000))
    plan = fitted().plan(steps=1000, lr=(1e-3, 0.1), start=begun, family="free", intervals=4)
    assert plan.schedule == fitted().plan(steps=1000, lr=(1e-3, 0.1), family="free", intervals=4).schedule


def test_lower_quantiles_are_more_careful_for_losses_and_for_accuracies() -> None:
    # no run has changed its rate: what a decay would do is a guess, so quantiles differ
    runs = [example_law.run(Schedule.constant(rate, 1000), until=300, name=str(rate)) for rate in (0.02, 0.06)]
    shifted = [Trace(r.steps, r.values - 9, r.schedule, name=r.name) for r in runs]
    turned = [Trace(r.steps, 9 - r.values, r.schedule, name=r.name, objective=Objective("max")) for r in runs]
    loss, gain = LawModel.fit(shifted), LawModel.fit(turned)
    plans = {}
    for quantile in (0.1, 0.9):
        plans[quantile], other = (
            model.plan(steps=1000, lr=(1e-3, 0.06), family="free", intervals=4, quantile=quantile)
            for model in (loss, gain)
        )
        np.testing.assert_allclose(plans[quantile].schedule.multipliers, other.schedule.multipliers, rtol=1e-6)
    assert not np.allclose(plans[0.1].schedule.multipliers, plans[0.9].schedule.multipliers, rtol=0.1)
    end = np.array([1000])  # quantiles are of the law, over the draws of its parameters
    careful, bold = (loss.law_at(SchedulePieces.of(plans[q].schedule, end), 0)[:, 0].numpy() for q in (0.1, 0.9))
    assert np.quantile(careful, 0.9) <= np.quantile(bold, 0.9) + 1e-3
    assert np.quantile(bold, 0.1) <= np.quantile(careful, 0.1) + 1e-3
    assert Caveat.NO_CHANGE in plans[0.1].caveats


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "nonsense"}, 'family must be "shape", "multipliers" or "free", got \'nonsense\': pick one'),
        ({"quantile": 0.0}, r"quantile must lie in \(0, 1\), got 0.0: 0.5 is the median"),
        ({"lr": (1.0, 10.0)}, "these runs worked at rates up to 0.1: lower the bound"),
        ({"family": "free", "intervals": 0}, r"intervals must lie in 1..1000, got 0: one rate for each"),
        ({"family": "free", "intervals": 2000}, r"intervals must lie in 1..1000, got 2000"),
        ({"start": half_run(), "family": "shape"}, 'plans a new run, got a run to continue: use "multipliers"'),
        ({"start": half_run(), "family": "free", "steps": 500}, "steps must lie after step 500.*: plan a longer run"),
    ],
)
def test_wrong_arguments_say_what_to_do(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fitted().plan(**{"steps": 1000, "lr": (1e-3, 0.1), **options})


def test_a_run_of_a_few_steps_can_be_planned() -> None:
    assert fitted().plan(steps=1, lr=(1e-3, 0.1)).schedule.steps == 1
    assert fitted().plan(steps=3, lr=(1e-3, 0.1), family="free", intervals=3).schedule.steps == 3


def too_high(values: list[float], **fields: bool) -> Trace:
    return Trace(STEPS[: len(values)], np.array(values), Schedule.constant(3.0, 400), name="too high", **fields)


@pytest.mark.parametrize(
    "bad",
    [
        too_high([2.0, 5.0, np.nan], failed=True),
        too_high([np.nan], failed=True),
        too_high([2.0, 5.0, 20.0, 90.0]),  # finite, but no rate to plan with
    ],
    ids=["diverged", "at once", "worse than at first"],
)
def test_a_rate_at_which_a_run_diverged_is_not_planned(bad: Trace) -> None:
    plan = LawModel.fit([*GOOD, bad]).plan(steps=400, lr=(1e-3, 10.0))
    assert plan.schedule.multipliers.max() <= 1.25 * 0.03


def test_without_a_stable_run_the_plan_is_a_decade_lower() -> None:
    model = LawModel.fit([too_high([2.0, 1.9, np.nan], failed=True)])
    assert model.plan(steps=400, lr=(1e-3, 10.0)).schedule.multipliers.max() <= 1.25 * 0.3
    with pytest.raises(InputError, match=r"these runs worked at rates up to 0.3: lower the bound"):
        model.plan(steps=400, lr=(1.0, 10.0))


def test_a_fork_that_was_dropped_early_does_not_show_that_its_rate_is_stable() -> None:
    short = Trace(STEPS[:10], 1 + (0.5 * STEPS[:10]) ** -0.5, Schedule.constant(0.5, 400), name="short")
    assert LawModel.fit([*GOOD, short]).plan(steps=400, lr=(1e-3, 10.0)).schedule(0) <= 1.25 * 0.03


@pytest.mark.parametrize("family", ["shape", "free"])
def test_a_plan_warms_up_no_faster_than_stable_runs(family: str) -> None:
    slow = Schedule.of(WarmupStableDecay(warmup=0.2), 0.03, 400)
    runs = [GOOD[0], Trace(STEPS, 1 + np.cumsum(slow(STEPS)) ** -0.5, slow, name="slow")]
    plan = LawModel.fit(runs).plan(steps=400, lr=(1e-3, 0.03), family=family).schedule
    assert shortest_warmup(runs) == pytest.approx(0.18, abs=0.01)
    assert isinstance(plan.base, WarmupStableDecay)
    assert plan.base.warmup >= 0.17
    assert plan(399) > 0
    fast = LawModel.fit(GOOD).plan(steps=400, lr=(1e-3, 0.03), family=family).schedule
    assert warmup_share(fast, 400) < 0.02
