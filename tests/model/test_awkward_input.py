"""Awkward input makes a clear error or a sensible trace model: never NaN, never a traceback from linear algebra."""

import numpy as np
import pytest

from paceline import InputError, Schedule, Trace, TraceModel
from paceline.problems import SyntheticFamily
from tests.model.example_runs import STEPS, decay
from tests.model.forecast_check import check_forecast

SOME_LINKS = ("linear", "exponential", "power", "hyperbolic", "signed", "relaxing", "ilog2", "pow4")


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("link", ["linear", "exponential", "signed"])
def test_units_do_not_matter(link: str, scale: float) -> None:
    rates = (1e-3, 3e-3, 1e-2)
    schedule = Schedule.constant(5e-3, 200)
    plain = TraceModel.fit([decay(r, noise=0.02) for r in rates], link=link, intervals=5).forecast(schedule)
    scaled = TraceModel.fit([decay(r, noise=0.02, scale=scale) for r in rates], link=link, intervals=5).forecast(
        schedule
    )
    np.testing.assert_allclose(scaled.mean / scale, plain.mean, rtol=1e-3)


@pytest.mark.parametrize("link", SOME_LINKS)
def test_one_trace_two_equal_ones_and_constant_values_make_sensible_models(link: str) -> None:
    one = decay(1e-2, noise=0.01)
    schedule = Schedule.constant(2e-2, 200)
    single = check_forecast(TraceModel.fit([one], link=link, intervals=5), schedule)
    twice = check_forecast(TraceModel.fit([one, one], link=link, intervals=5), schedule)
    assert np.abs(single - twice).max() < 1.0
    for value in (0.0, 7.0, -1e-9, 1e12):
        flat = Trace(STEPS, np.full(len(STEPS), value), Schedule.constant(1e-2, 200))
        mean = check_forecast(TraceModel.fit([flat, flat], link=link, intervals=5), schedule)
        assert np.abs(mean - value).max() <= 0.5 * max(abs(value), 1.0)


# a relaxing link takes all of its iterations in each of many steps there
@pytest.mark.parametrize(
    "link", [pytest.param(link, marks=pytest.mark.slow if link == "relaxing" else ()) for link in SOME_LINKS]
)
def test_a_run_that_gets_worse_and_one_that_jumps(link: str) -> None:
    worse = Trace(STEPS, np.linspace(1, 1.4, len(STEPS)), Schedule.constant(1e-2, 200))
    check_forecast(TraceModel.fit([worse], link=link, intervals=5), worse.schedule, worse.head(10))
    jump = Trace(STEPS, np.where(STEPS < 100, 5.0, 1.0), Schedule.constant(1e-2, 200))
    check_forecast(TraceModel.fit([jump], link=link, intervals=5), jump.schedule, jump.head(10))


def test_a_trace_shorter_than_one_interval_is_a_partial_one() -> None:
    short = decay(1e-2).head(3)
    model = TraceModel.fit([short], intervals=[0, 100, 200])
    assert [(s.start, s.stop, s.moments.n) for s in model.segments] == [(0, 20, 2)]
    check_forecast(model, short.schedule, short)


def test_values_too_large_to_square_end_a_trace_as_failed() -> None:
    values = decay(1e-2).values.copy()
    values[10] = 1e300
    with pytest.raises(InputError, match="below 1e100"):
        Trace(STEPS, values, Schedule.constant(1e-2, 200))
    run = Trace.from_table(STEPS, np.full(len(STEPS), 1e-2), values)
    assert run.failed
    check_forecast(TraceModel.fit([run, decay(1e-3)], intervals=10), run.schedule)


def test_a_run_that_diverged_does_not_change_the_units() -> None:
    good = [decay(r, noise=0.01, seed=i) for i, r in enumerate((1e-3, 3e-3, 1e-2))]
    values = decay(2e-2).values.copy()
    values[10:] = 1e8
    diverged = Trace(STEPS, values, Schedule.constant(2e-2, 200))
    schedule = Schedule.constant(3e-3, 200)
    alone = TraceModel.fit(good, intervals=10, lr=(1e-3, 2e-2)).forecast(schedule, [200])
    beside = TraceModel.fit([*good, diverged], intervals=10, lr=(1e-3, 2e-2)).forecast(schedule, [200])
    assert abs(alone.median[0] - beside.median[0]) < 0.1


def test_failed_runs_teach_the_failure_model() -> None:
    good = [decay(r, noise=0.01) for r in (1e-3, 1e-2)]
    values = decay(3e-2).values.copy()
    values[8:] = np.nan
    diverged = Trace(STEPS, values, Schedule.constant(3e-2, 200), failed=True)
    model = TraceModel.fit([*good, diverged], intervals=10)
    assert model.failed().sum() == 1
    check_forecast(model, diverged.schedule, diverged)
    failures = model.fit_failures()
    p = failures.probability(model.failure_inputs(float(values[7]), np.array([1e-3, 3e-2])))
    assert np.all((p > 0) & (p < 1))
    assert p[1] > p[0]


@pytest.mark.parametrize("each", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_thousands_of_intervals(each: int) -> None:
    rng = np.random.default_rng(0)
    drawn = SyntheticFamily.of("linear", rng)
    runs = [drawn.run(rng.uniform(size=each), rng, length=4, every=1, name=str(i), start=-20.0) for i in range(10)]
    model = TraceModel.fit(runs)
    assert len(model.segments) == 10 * each
    check_forecast(model, runs[0].schedule, runs[0].head(3 * each))
