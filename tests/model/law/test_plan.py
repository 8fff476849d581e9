"""Planning: gradients, bounds, going on, and that a plan is as good as the law allows."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import check_grad

from paceline import InputError, LearningRateRange, Objective, Schedule, Trace
from paceline.model.law import LawModel
from paceline.model.law.plan import BEYOND, Family, Multipliers, Shapes, final_loss
from paceline.model.law.state import Pieces
from paceline.shapes import HOLD_THEN_DECAY, Constant
from tests.model.law import drawn

BOUNDS = LearningRateRange(1e-3, 0.1)
POINTS = np.array([0, 250, 500, 750, 1000])


@cache
def fitted() -> LawModel:
    return LawModel.fit(drawn.runs())


@cache
def half_way() -> Trace:
    return drawn.run(Schedule.of("linear", 0.05, 1000), seed=4, until=500, name="half way")


def families() -> dict[str, tuple[Family, Trace | None]]:
    ahead = np.array([500, 700, 1000])
    return {
        "shape": (Shapes(BOUNDS, 1000), None),
        "multipliers": (Multipliers(BOUNDS, 1000, HOLD_THEN_DECAY, POINTS, None), None),
        "free": (Multipliers(BOUNDS, 1000, Constant(), POINTS, None), None),
        "going on": (Multipliers(BOUNDS, 1000, Constant(), ahead, half_way().schedule), half_way()),
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
        law = fitted().law(Pieces.of(schedule, np.arange(20, 1001, 20)), 0)[:, -1].numpy()
        assert value(np.array(x))[0] == pytest.approx(np.median(np.log(law)), abs=0.01)


@pytest.mark.parametrize("family", ["shape", "multipliers", "free"])
def test_a_plan_beats_what_was_run_and_keeps_to_the_bounds(family: str) -> None:
    plan = fitted().plan(steps=1000, lr=(1e-3, 0.08), family=family)
    rates = plan.schedule(np.arange(1000))
    assert plan.schedule.steps == 1000
    assert rates.max() <= 0.08 * (1 + 1e-9)
    if family == "free":
        assert rates.min() >= 1e-3 * (1 - 1e-9)
    truth = drawn.loss(plan.schedule, np.array([1000]))[0]
    tried = [drawn.loss(run.schedule, run.steps)[-1] for run in drawn.runs()]
    tried += [drawn.loss(Schedule.of(shape, 0.08, 1000), np.array([1000]))[0] for shape in ("constant", "cosine")]
    assert truth < min(tried) + 0.005
    assert plan.forecast.steps[-1] == 1000
    low, high = plan.forecast.band(0.9)
    assert low[-1] < truth < high[-1]
    assert (plan.family, plan.quantile, plan.caveats) == (family, 0.5, ())


def test_a_plan_does_not_go_above_the_rates_seen() -> None:
    plan = fitted().plan(steps=1000, lr=(1e-3, 10.0), family="free", intervals=5)
    assert plan.schedule(np.arange(1000)).max() <= BEYOND * 0.1 * (1 + 1e-9)


@pytest.mark.parametrize("family", ["multipliers", "free"])
@pytest.mark.parametrize("steps", [1000, 1500])
def test_goes_on_from_where_the_run_stands(family: str, steps: int) -> None:
    start, at = half_way(), np.arange(500)
    plan = fitted().plan(steps=steps, lr=(1e-3, 0.1), start=start, family=family, intervals=4)
    np.testing.assert_allclose(plan.schedule(at), start.schedule(at), rtol=0.01)
    assert plan.schedule.steps == steps
    assert plan.forecast.steps[0] > 500
    as_it_was = start.schedule if steps == 1000 else Schedule.of("linear", 0.05, steps)
    best = fitted().final([plan.schedule, as_it_was], start=start)
    assert np.median(best[:, 0]) < np.median(best[:, 1]) + 0.005


def test_a_run_that_has_not_begun_is_planned_from_its_first_step() -> None:
    begun = Trace(np.array([0]), np.array([5.0]), Schedule.constant(0.01, 1000))
    plan = fitted().plan(steps=1000, lr=(1e-3, 0.1), start=begun, family="free", intervals=4)
    assert plan.schedule == fitted().plan(steps=1000, lr=(1e-3, 0.1), family="free", intervals=4).schedule


def test_lower_quantiles_are_more_careful_for_losses_and_for_accuracies() -> None:
    # no run has changed its rate: what a decay would bring is a guess, so quantiles differ
    runs = [drawn.run(Schedule.constant(rate, 1000), until=300, name=str(rate)) for rate in (0.02, 0.06)]
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
    careful, bold = (loss.law(Pieces.of(plans[q].schedule, end), 0)[:, 0].numpy() for q in (0.1, 0.9))
    assert np.quantile(careful, 0.9) <= np.quantile(bold, 0.9) + 1e-3
    assert np.quantile(bold, 0.1) <= np.quantile(careful, 0.1) + 1e-3
    assert "no run has changed its rate yet" in " ".join(plans[0.1].caveats)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": "nonsense"}, 'family must be "shape", "multipliers" or "free", got \'nonsense\': pick one'),
        ({"quantile": 0.0}, r"quantile must lie in \(0, 1\), got 0.0: 0.5 is the median"),
        ({"lr": (1.0, 10.0)}, "these runs worked at rates up to 0.1: lower the bound, or fit"),
        ({"family": "free", "intervals": 0}, r"intervals must lie in 1..1000, got 0: one rate for each"),
        ({"family": "free", "intervals": 2000}, r"intervals must lie in 1..1000, got 2000"),
        ({"start": half_way(), "family": "shape"}, 'plans a new run, got a run to continue: use "multipliers"'),
        ({"start": half_way(), "family": "free", "steps": 500}, "steps must lie after step 500.*: plan a longer run"),
    ],
)
def test_what_cannot_be_planned(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fitted().plan(**{"steps": 1000, "lr": (1e-3, 0.1), **options})


def test_a_run_of_a_few_steps_can_be_planned() -> None:
    assert fitted().plan(steps=1, lr=(1e-3, 0.1)).schedule.steps == 1
    assert fitted().plan(steps=3, lr=(1e-3, 0.1), family="free", intervals=3).schedule.steps == 3
