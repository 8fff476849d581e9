"""The trace model from traces to forecasts, and what it does with awkward input."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import InputError, Objective, Schedule, Trace, TraceModel
from paceline.model.links import LINKS, Link
from paceline.problems import SyntheticFamily
from paceline.shapes import Linear

STEPS = np.arange(0, 201, 10)


def decay(rate: float, *, scale: float = 1.0, noise: float = 0.0, seed: int = 0, **fields) -> Trace:
    """A loss that falls faster at larger rates."""
    rng = np.random.default_rng(seed)
    values = scale * (3 * np.exp(-rate * STEPS) + 0.5 + noise * rng.standard_normal(len(STEPS)))
    return Trace(STEPS, values, Schedule.constant(rate, 200), **fields)


def family(link: str, count: int, seed: int = 0, intervals: int = 5) -> list[Trace]:
    rng = np.random.default_rng(seed)
    drawn = SyntheticFamily.of(link, rng)
    return [drawn.run(rng.uniform(size=intervals), rng, name=str(i)) for i in range(count)]


def healthy(model: TraceModel, schedule: Schedule, start: Trace | None = None) -> np.ndarray:
    """Draws are finite, and bands are wider than nothing."""
    forecast = model.forecast(schedule, start=start, draws=100)
    assert np.isfinite(forecast.draws).all()
    assert np.isfinite(model.bound)
    low, high = forecast.band(0.9)
    assert np.all(high > low)
    return forecast.mean


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("link", list(LINKS))
def test_forecasts_a_held_out_run_better_than_its_start(link: str, order: int) -> None:
    *runs, held_out = family(link, 7)
    model = TraceModel.fit(runs, link=link, order=order)
    forecast = model.forecast(held_out.schedule, held_out.steps[1:])
    error = np.abs(forecast.mean - held_out.values[1:]).mean()
    assert error < 0.5 * np.abs(held_out.values[0] - held_out.values[1:]).mean()
    middle = held_out.head(len(held_out.steps) // 2)
    later = model.forecast(held_out.schedule, held_out.steps[len(middle.steps) :], start=middle)
    assert np.abs(later.mean - held_out.values[len(middle.steps) :]).mean() < error + 0.1


def test_the_first_interval_from_a_start_continues_the_run() -> None:
    model = TraceModel.fit([decay(r, noise=0.02, seed=i) for i, r in enumerate((1e-3, 3e-3, 1e-2, 3e-2))], intervals=10)
    run = decay(5e-3, noise=0.02, seed=9).head(8)
    soon = model.forecast(run.schedule, [run.last_step], start=run, noise=False)
    truth = 3 * np.exp(-5e-3 * run.last_step) + 0.5
    assert abs(soon.mean[0] - truth) < 0.02
    assert soon.draws.std() < 0.02  # the level is known better than one observation


def test_mode_and_transform_give_the_same_picture_in_the_users_units() -> None:
    rates = (1e-3, 3e-3, 1e-2, 3e-2)
    loss = TraceModel.fit([decay(r) for r in rates], intervals=10)
    gains = [replace(decay(r), values=-decay(r).values, objective=Objective(mode="max")) for r in rates]
    gain = TraceModel.fit(gains, intervals=10)
    schedule = Schedule.constant(5e-3, 200)
    np.testing.assert_allclose(loss.forecast(schedule).mean, -gain.forecast(schedule).mean, rtol=1e-9)
    log = TraceModel.fit([replace(decay(r), objective=Objective(transform="log")) for r in rates], intervals=10)
    truth = 3 * np.exp(-5e-3 * 200) + 0.5
    assert abs(log.forecast(schedule).mean[-1] - truth) < 0.15 * truth
    optimistic, cautious = (
        m.quantile(a, np.array([1e-2]), start=s.head(5)) for m, s in ((loss, decay(3e-3)),) for a in (0.9, 0.1)
    )
    assert optimistic[0] < cautious[0]
    start = gains[1].head(5)
    assert gain.quantile(0.9, np.array([1e-2]), start=start)[0] > gain.quantile(0.1, np.array([1e-2]), start=start)[0]


@pytest.mark.parametrize("link", ["linear", "exponential", "signed"])
def test_quantiles_agree_with_forecasts(link: str) -> None:
    runs = family(link, 6)
    model = TraceModel.fit(runs[:5], link=link)
    start = runs[5].head(21)
    assert start.last_step == 40
    rates = np.array([1e-3, 1e-2])
    for rate, q in zip(rates, model.quantile(0.8, rates, start=start), strict=True):
        schedule = start.schedule.join(Schedule([rate], [0, 200]), 40)
        points = Schedule([*start.schedule.multipliers[:1], rate, rate, rate, rate], np.arange(6) * 40)
        assert schedule(50) == pytest.approx(points(50))
        drawn = model.forecast(points, [80], start=start, draws=20_000, noise=False).draws[:, 0]
        assert np.mean(drawn <= q) == pytest.approx(0.8, abs=0.02)


def test_updates_start_warm_and_end_where_a_cold_fit_does() -> None:
    runs = family("linear", 6, intervals=8)
    bounds = (1e-4, 1e-1)
    early = TraceModel.fit(runs[:5], lr=bounds)
    late = early.update([runs[5]])
    cold = TraceModel.fit(runs, lr=bounds)
    assert len(late.segments) == len(cold.segments)
    if late.encoder.scaling == cold.encoder.scaling:
        assert late.bound == pytest.approx(cold.bound, abs=0.1 * len(cold.segments))
    schedule = runs[0].schedule
    gap = np.abs(late.forecast(schedule).mean - cold.forecast(schedule).mean)
    assert gap.max() < 0.05


def test_growing_runs_are_counted_once_and_rescaled_when_they_outgrow_their_units() -> None:
    runs = [decay(r, noise=0.01, name=f"r{r}") for r in (3e-3, 1e-2)]
    model = TraceModel.fit([run.head(4) for run in runs], intervals=10)
    first = model.encoder.scaling.scale
    for count in (7, 12, 21):
        model = model.update([run.head(count) for run in runs])
    assert sum(s.moments.n for s in model.segments) == 2 * 20
    assert model.encoder.scaling.scale > first
    whole = TraceModel.fit(runs, intervals=10)
    assert [(s.start, s.stop) for s in sorted(model.segments, key=lambda s: (s.trace, s.start))] == [
        (s.start, s.stop) for s in sorted(whole.segments, key=lambda s: (s.trace, s.start))
    ]


def test_multipliers_of_a_shared_base_are_the_control_and_other_bases_are_refused() -> None:
    def run(peak: float, base: str) -> Trace:
        return replace(decay(peak), schedule=Schedule.of(base, peak, 200))

    model = TraceModel.fit([run(r, "linear") for r in (1e-3, 1e-2)], intervals=5)
    assert model.encoder.segmenter.base == Linear()
    assert all(s.controls[0] in (-3.0, -2.0) for s in model.segments)
    healthy(model, Schedule.of("linear", 3e-3, 200))
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Cosine.*same base"):
        model.forecast(Schedule.of("cosine", 3e-3, 200))
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Constant"):
        model.update([decay(1e-2)])
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Constant"):
        model.quantile(0.5, [1e-2], start=decay(1e-2).head(5), stop=200)
    mixed = TraceModel.fit([run(1e-3, "linear"), run(1e-2, "cosine")], intervals=5)
    assert mixed.encoder.segmenter.base is None
    healthy(mixed, Schedule.of("exponential", 3e-3, 200))


def test_forks_are_fitted_once_and_forecast_from_where_they_are() -> None:
    parent = decay(1e-2, noise=0.01, name="p")
    forks = []
    for i, rate in enumerate((3e-3, 3e-2)):
        schedule = Schedule([1e-2, rate], [0, 100, 200])
        values = 0.5 + 3 * np.exp(-1.0) * np.exp(-rate * (STEPS[11:] - 100))
        forks.append(parent.fork(STEPS[11:], values, schedule, at=100, name=f"f{i}"))
    model = TraceModel.fit([parent, *forks], intervals=10)
    assert sum(s.moments.n for s in model.segments) == 20 + 2 * 10
    ahead = forks[0].head(5)
    forecast = model.forecast(forks[0].schedule, [200], start=ahead)
    assert abs(forecast.mean[0] - forks[0].values[-1]) < 0.15


@pytest.mark.parametrize("dims", [0, 1, 2])
def test_tasks_are_embedded_and_asked_for_by_name(dims: int) -> None:
    traces = [decay(r, task=task, scale=scale) for task, scale in (("a", 1.0), ("b", 1.5)) for r in (1e-3, 1e-2, 3e-2)]
    model = TraceModel.fit(traces, intervals=5, tasks=dims)
    assert model.encoder.tasks == ("a", "b")
    assert model.posterior.hyper.embedding.shape == (2, dims)
    schedule = Schedule.constant(1e-2, 200)
    one, two = (model.forecast(schedule, task=task, start=None).mean[-1] for task in ("a", "b"))
    assert np.isfinite([one, two]).all()
    with pytest.raises(InputError, match=r"one of those fitted, \['a', 'b'\], got 'c'"):
        model.forecast(schedule, task="c")


@pytest.mark.parametrize("link", ["linear", "exponential"])
def test_models_conditioned_on_many_draws_answer_like_each_of_them(link: str) -> None:
    runs = family(link, 5)
    model = TraceModel.fit(runs, link=link)
    drawn = model.draw(runs[0].schedule, draws=3)
    rates, start = np.array([1e-3, 1e-2]), runs[1].head(21)
    together = model.condition_on(drawn).quantile(0.7, rates, start=start)
    assert together.shape == (3, 2)
    for i in range(3):
        np.testing.assert_allclose(
            together[i], model.condition_on(drawn[i]).quantile(0.7, rates, start=start), rtol=1e-6
        )


class SquareRoot(Link):
    """A family of a user's own, with one latent."""

    name = "square-root"
    latents = 1

    def curve(self, f: torch.Tensor, elapsed: torch.Tensor) -> torch.Tensor:
        return elapsed.sqrt()


def test_a_link_of_ones_own_with_one_latent() -> None:
    rng = np.random.default_rng(0)
    runs = []
    for i in range(4):
        values = 2 - np.sqrt(STEPS / 200) + 0.001 * rng.standard_normal(len(STEPS))
        runs.append(Trace(STEPS, values, Schedule.constant(10.0 ** -(1 + i), 200), name=str(i)))
    model = TraceModel.fit(runs, link=SquareRoot(), intervals=[0, 200])
    assert model.noise < 0.002
    assert abs(model.forecast(runs[0].schedule, [100]).median[0] - (2 - np.sqrt(0.5))) < 0.01


def test_a_run_that_blew_up_does_not_spoil_the_units() -> None:
    healthy_runs = [decay(r, noise=0.01, seed=i) for i, r in enumerate((1e-3, 3e-3, 1e-2))]
    values = decay(2e-2).values.copy()
    values[10:] = 1e8
    blown = Trace(STEPS, values, Schedule.constant(2e-2, 200))
    schedule = Schedule.constant(3e-3, 200)
    alone = TraceModel.fit(healthy_runs, intervals=10, lr=(1e-3, 2e-2)).forecast(schedule, [200])
    beside = TraceModel.fit([*healthy_runs, blown], intervals=10, lr=(1e-3, 2e-2)).forecast(schedule, [200])
    assert abs(alone.median[0] - beside.median[0]) < 0.1


def test_the_log_clock_before_its_origin() -> None:
    steps = np.arange(0, 1001, 5)
    runs = [Trace(steps, 3 * np.exp(-rate * steps) + 0.5, Schedule.constant(rate, 1000)) for rate in (1e-3, 1e-2)]
    model = TraceModel.fit(runs, clock="log", intervals=6)
    q = model.quantile(0.5, [1e-3, 1e-2], start=runs[0].head(1))
    assert q[1] < q[0] < 3.5


def test_one_run_recorded_late_does_not_widen_the_start() -> None:
    runs = [decay(r, noise=0.01, seed=i) for i, r in enumerate((1e-3, 3e-3, 1e-2))]
    late = replace(decay(1e-2), steps=STEPS[10:], values=decay(1e-2).values[10:])
    law = TraceModel.fit([*runs, late], intervals=10).start_distribution
    assert law.step == 0
    assert law.deviation < 0.05


# awkward input: a clear error or a sensible model, never NaN, never a traceback from linear algebra


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


@pytest.mark.parametrize("link", list(LINKS))
def test_one_trace_two_equal_ones_and_constant_values_make_sensible_models(link: str) -> None:
    one = decay(1e-2, noise=0.01)
    schedule = Schedule.constant(2e-2, 200)
    single = healthy(TraceModel.fit([one], link=link, intervals=5), schedule)
    twice = healthy(TraceModel.fit([one, one], link=link, intervals=5), schedule)
    assert np.abs(single - twice).max() < 1.0
    for value in (0.0, 7.0, -1e-9, 1e12):
        flat = Trace(STEPS, np.full(len(STEPS), value), Schedule.constant(1e-2, 200))
        mean = healthy(TraceModel.fit([flat, flat], link=link, intervals=5), schedule)
        assert np.abs(mean - value).max() <= 0.5 * max(abs(value), 1.0)


@pytest.mark.parametrize("link", list(LINKS))
def test_a_run_that_gets_worse_and_one_that_jumps(link: str) -> None:
    worse = Trace(STEPS, np.linspace(1, 1.4, len(STEPS)), Schedule.constant(1e-2, 200))
    healthy(TraceModel.fit([worse], link=link, intervals=5), worse.schedule, worse.head(10))
    jump = Trace(STEPS, np.where(STEPS < 100, 5.0, 1.0), Schedule.constant(1e-2, 200))
    healthy(TraceModel.fit([jump], link=link, intervals=5), jump.schedule, jump.head(10))


def test_a_trace_shorter_than_one_interval_is_a_partial_one() -> None:
    short = decay(1e-2).head(3)
    model = TraceModel.fit([short], intervals=[0, 100, 200])
    assert [(s.start, s.stop, s.moments.n) for s in model.segments] == [(0, 20, 2)]
    healthy(model, short.schedule, short)


def test_values_too_large_to_square_end_a_trace_as_failed() -> None:
    values = decay(1e-2).values.copy()
    values[10] = 1e300
    with pytest.raises(InputError, match="below 1e100"):
        Trace(STEPS, values, Schedule.constant(1e-2, 200))
    run = Trace.from_table(STEPS, np.full(len(STEPS), 1e-2), values)
    assert run.failed
    healthy(TraceModel.fit([run, decay(1e-3)], intervals=10), run.schedule)


def test_a_new_run_begins_where_runs_are_first_observed() -> None:
    steps = np.arange(500, 1001, 20)
    late = [Trace(steps, 4 - 0.003 * steps, Schedule.constant(rate, 1000)) for rate in (0.1, 0.2)]
    model = TraceModel.fit(late, clock="log", intervals=6)
    assert model.start_distribution.step == 500
    forecast = model.forecast(late[0].schedule, [1000])
    assert abs(forecast.median[0] - late[0].last_value) < 0.3
    with pytest.raises(InputError, match="at or after step 500"):
        model.forecast(late[0].schedule, [100])


def test_failed_runs_teach_what_they_can() -> None:
    good = [decay(r, noise=0.01) for r in (1e-3, 1e-2)]
    values = decay(3e-2).values.copy()
    values[8:] = np.nan
    diverged = Trace(STEPS, values, Schedule.constant(3e-2, 200), failed=True)
    model = TraceModel.fit([*good, diverged], intervals=10)
    assert model.failed().sum() == 1
    healthy(model, diverged.schedule, diverged)
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
    healthy(model, runs[0].schedule, runs[0].head(3 * each))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TraceModel.fit([]), "at least one trace, got none"),
        (lambda: fitted().quantile(0.5, [], start=decay(1e-2).head(3)), r"candidates in \(0, inf\), got \[\]"),
        (lambda: fitted().quantile(0.5, [0.0], start=decay(1e-2).head(3)), r"candidates in \(0, inf\), got \[0.0\]"),
        (lambda: TraceModel.fit([decay(1e-2).head(1)]), r"got 0 interval\(s\), 0 of them failed"),
        (lambda: TraceModel.fit([decay(1e-2, name="a"), decay(1e-3, name="a")]), r"several runs named \['a'\]: rename"),
        (lambda: fitted().forecast(Schedule.constant(1e-2, 200), [100]).band(90), r"share in \(0, 1\), got 90"),
        (lambda: TraceModel.fit([decay(1e-2)], order=4), r"1, 2 or 3, got 4: it is q of NARX\(q\)"),
        (lambda: TraceModel.fit([decay(1e-2)], link="quadratic"), "unknown link 'quadratic': use one of linear"),
        (lambda: TraceModel.fit([decay(1e-2)], intervals=1000), "between 1 and the 200 steps of the run, got 1000"),
        (lambda: TraceModel.fit([decay(1e-2)], intervals=[0, 50, 20]), "two increasing whole steps from 0 on"),
        (lambda: TraceModel.fit([decay(1e-2)], lr=(1e-1, 1e-3)), r"got \(0.1, 0.001\): swap them"),
        (lambda: TraceModel.fit([decay(1e-2)], lr=(0.0, 1e-3)), "0 < low < high"),
        (lambda: TraceModel.fit([decay(1e-2)], inducing=0), "inducing must be at least 1, got 0"),
        (lambda: TraceModel.fit([decay(1e-2)], tasks=-1), "dimension of the embedding"),
        (lambda: TraceModel.fit([decay(1e-2), decay(1e-2, objective=Objective("max"))]), "share one objective, got 2"),
        (
            lambda: TraceModel.fit([decay(1e-2, scale=-1, objective=Objective(transform="log"))]),
            "needs positive values",
        ),
        (lambda: fitted().forecast(Schedule.constant(1e-2, 200), [50, 50]), "must increase"),
        (
            lambda: fitted().forecast(Schedule.constant(1e-2, 200), [5], start=decay(1e-2).head(3)),
            "at or after step 20",
        ),
        (lambda: fitted().draw(Schedule.constant(1e-2, 200), draws=0), "draws must be at least 1, got 0"),
        (
            lambda: fitted().draw(Schedule.constant(1e-2, 200), unit_lr=torch.zeros(3).double()),
            "each of 5 intervals to come",
        ),
        (lambda: fitted().quantile(1.5, np.array([1e-2]), start=decay(1e-2).head(3)), r"alpha must lie in \(0, 1\)"),
        (lambda: fitted().quantile(0.5, np.array([1e-2]), start=decay(1e-2).head(3), stop=20), "after step 20"),
        (lambda: fitted().update([decay(1e-2, objective=Objective("max"))]), "objective the model was fitted to"),
    ],
)
def test_bad_input_says_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def fitted() -> TraceModel:
    return TraceModel.fit([decay(1e-3), decay(1e-2)], intervals=5)
