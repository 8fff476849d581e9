"""The trace model from traces to forecasts."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from paceline import InputError, Objective, Schedule, Trace, TraceModel
from paceline.model import Link, Normals
from paceline.shapes import Linear
from tests.model.example_runs import NEW_SCHEDULE, STEPS, decay, drawn_runs, task_runs
from tests.model.forecast_check import check_forecast


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("link", ["linear", "exponential", "power", "hyperbolic", "signed", "relaxing"])
def test_forecasts_a_held_out_run_better_than_its_start(link: str, order: int) -> None:
    *runs, held_out = drawn_runs(link, 7)
    model = TraceModel.fit(runs, link=link, order=order)
    forecast = model.forecast(held_out.schedule, held_out.steps[1:])
    error = np.abs(forecast.mean - held_out.values[1:]).mean()
    assert error < 0.5 * np.abs(held_out.values[0] - held_out.values[1:]).mean()
    middle = held_out.head(len(held_out.steps) // 2)
    later = model.forecast(held_out.schedule, held_out.steps[len(middle.steps) :], start=middle)
    assert np.abs(later.mean - held_out.values[len(middle.steps) :]).mean() < error + 0.1


@pytest.mark.parametrize("link", ["ilog2", "pow4", "weibull"])
def test_links_with_one_three_and_four_latents_forecast_from_the_start_and_from_a_change_point(link: str) -> None:
    *runs, held_out = drawn_runs(link, 5, intervals=3)
    model = TraceModel.fit(runs, link=link)
    forecast = model.forecast(held_out.schedule, held_out.steps[1:], draws=200)
    assert np.abs(forecast.mean - held_out.values[1:]).mean() < 0.3 * np.ptp(held_out.values)
    start, ahead = held_out.head(21), held_out.values[21:41]
    assert start.last_step == 40
    later = model.forecast(held_out.schedule, held_out.steps[21:41], start=start, draws=200)
    assert np.abs(later.mean - ahead).mean() < 0.3 * np.ptp(ahead)
    assert model.update([held_out]).bound > model.bound


def test_mode_and_transform_do_not_change_forecasts_in_the_users_units() -> None:
    rates = (1e-3, 3e-3, 1e-2, 3e-2)
    loss = TraceModel.fit([decay(r) for r in rates], intervals=10)
    gains = [replace(decay(r), values=-decay(r).values, objective=Objective(mode="max")) for r in rates]
    gain = TraceModel.fit(gains, intervals=10)
    schedule = Schedule.constant(5e-3, 200)
    np.testing.assert_allclose(loss.forecast(schedule).mean, -gain.forecast(schedule).mean, rtol=1e-9)
    log = TraceModel.fit([replace(decay(r), objective=Objective(transform="log")) for r in rates], intervals=10)
    truth = 3 * np.exp(-5e-3 * 200) + 0.5
    assert abs(log.forecast(schedule).mean[-1] - truth) < 0.15 * truth
    optimistic, careful = (
        m.quantile(a, np.array([1e-2]), start=s.head(5)) for m, s in ((loss, decay(3e-3)),) for a in (0.9, 0.1)
    )
    assert optimistic[0] < careful[0]
    start = gains[1].head(5)
    assert gain.quantile(0.9, np.array([1e-2]), start=start)[0] > gain.quantile(0.1, np.array([1e-2]), start=start)[0]


@pytest.mark.parametrize("link", ["linear", "exponential", "signed"])
def test_quantiles_agree_with_forecasts(link: str) -> None:
    runs = drawn_runs(link, 6)
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


def test_multipliers_of_a_shared_base_are_the_control_and_other_bases_are_refused() -> None:
    def run(peak: float, base: str) -> Trace:
        return replace(decay(peak), schedule=Schedule.of(base, peak, 200))

    model = TraceModel.fit([run(r, "linear") for r in (1e-3, 1e-2)], intervals=5)
    assert model.encoder.segmenter.base == Linear()
    assert all(s.controls[0] in (-3.0, -2.0) for s in model.segments)
    check_forecast(model, Schedule.of("linear", 3e-3, 200))
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Cosine.*same base"):
        model.forecast(Schedule.of("cosine", 3e-3, 200))
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Constant"):
        model.update([decay(1e-2)])
    with pytest.raises(InputError, match=r"multipliers of Linear.*schedule on Constant"):
        model.quantile(0.5, [1e-2], start=decay(1e-2).head(5), stop=200)
    mixed = TraceModel.fit([run(1e-3, "linear"), run(1e-2, "cosine")], intervals=5)
    assert mixed.encoder.segmenter.base is None
    check_forecast(mixed, Schedule.of("exponential", 3e-3, 200))


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
    runs = drawn_runs(link, 5)
    model = TraceModel.fit(runs, link=link)
    drawn = model.draw(runs[0].schedule, draws=3)
    rates, start = np.array([1e-3, 1e-2]), runs[1].head(21)
    together = model.condition_on(drawn).quantile(0.7, rates, start=start)
    assert together.shape == (3, 2)
    for i in range(3):
        np.testing.assert_allclose(
            together[i], model.condition_on(drawn[i]).quantile(0.7, rates, start=start), rtol=1e-6
        )


def test_the_same_seed_gives_the_same_draws_and_the_global_seed_is_unchanged() -> None:
    model = TraceModel.fit(drawn_runs("linear", 4, seed=3))
    schedule = Schedule([1e-2] * 5, np.arange(6) * 40)
    before = torch.get_rng_state()
    first, second = model.forecast(schedule), model.forecast(schedule)
    np.testing.assert_array_equal(first.draws, second.draws)
    assert bool((torch.get_rng_state() == before).all())
    other = model.forecast(schedule, generator=torch.Generator().manual_seed(5))
    assert np.any(other.draws != first.draws)


def test_a_model_conditioned_on_a_draw_is_less_uncertain_and_works_in_batches() -> None:
    model = TraceModel.fit(drawn_runs("linear", 4, seed=3))
    schedule = Schedule([2e-2] * 5, np.arange(6) * 40)
    drawn = model.draw(schedule, draws=3)
    conditioned = model.condition_on(drawn[0])
    before, after = model.draw(schedule, draws=500).values, conditioned.draw(schedule, draws=500).values
    assert float(after[:, 1].std()) < float(before[:, 1].std())
    batch = model.condition_on(drawn)
    assert batch.draw(schedule, draws=7).values.shape == (3, 7, 6)
    torch.testing.assert_close(
        batch.draw(schedule, draws=4).values[0], conditioned.draw(schedule, draws=4).values, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize("random_effect", [True, False])
def test_the_median_outcome_of_a_rate_changes_only_the_certainty(random_effect: bool) -> None:
    runs = drawn_runs("linear", 4, seed=3)
    model, run = TraceModel.fit(runs, random_effect=random_effect), runs[1].head(9)
    rates = model.encoder.scaling.lr_range.from_unit(np.array([0.25, 0.3, 0.9]))
    after = model.with_median_outcome(rates[0], start=run, stop=120)
    median = model.quantile(0.5, rates, start=run, stop=120)
    np.testing.assert_allclose(after.quantile(0.5, rates, start=run, stop=120), median, rtol=1e-6)
    x = torch.tensor([float(model.run_state(None, Normals.zeros(1, 1), run).values[0]), 0.25], dtype=torch.float64)
    variance, nugget = float(model.process.marginal(x).variance), float(model.posterior.hyper.nugget)
    # Var(f | f + xi) = v nu / (v + nu)
    known = max(variance * nugget / (variance + nugget), 1e-6 * float(model.posterior.hyper.variance))
    assert float(after.process.marginal(x).variance) == pytest.approx(known, rel=1e-6)
    spread = [np.abs(m.quantile(0.9, rates, start=run, stop=120) - median) for m in (model, after)]
    assert (spread[1] < spread[0])[:2].all()
    assert spread[1][2] / spread[0][2] > spread[1][0] / spread[0][0]


def test_without_anchor_noise_a_forecast_begins_at_the_last_value() -> None:
    runs = [decay(rate, noise=0.02, seed=i) for i, rate in enumerate((1e-3, 3e-3, 1e-2, 3e-2))]
    run = decay(5e-3, noise=0.02, seed=9).head(8)
    exact, noisy = (TraceModel.fit(runs, intervals=10, anchor_noise=noise) for noise in (False, True))
    starts = [model.draw(run.schedule, start=run, draws=50).values[:, 0] for model in (exact, noisy)]
    assert bool((starts[0] == starts[0][0]).all())
    assert float(exact.encoder.to_user(starts[0][:1])[0]) == pytest.approx(run.values[-1])
    assert float(starts[1].std()) > 0


class SquareRoot(Link):
    """A family of a user's own, with one latent."""

    name = "square-root"
    latents = 1

    def curve(self, f: torch.Tensor, elapsed: torch.Tensor) -> torch.Tensor:
        return elapsed.sqrt()


def test_a_users_link_with_one_latent() -> None:
    rng = np.random.default_rng(0)
    runs = []
    for i in range(4):
        values = 2 - np.sqrt(STEPS / 200) + 0.001 * rng.standard_normal(len(STEPS))
        runs.append(Trace(STEPS, values, Schedule.constant(10.0 ** -(1 + i), 200), name=str(i)))
    model = TraceModel.fit(runs, link=SquareRoot(), intervals=[0, 200])
    assert model.noise < 0.002
    assert abs(model.forecast(runs[0].schedule, [100]).median[0] - (2 - np.sqrt(0.5))) < 0.01


def test_the_log_clock_before_its_origin() -> None:
    steps = np.arange(0, 1001, 5)
    runs = [Trace(steps, 3 * np.exp(-rate * steps) + 0.5, Schedule.constant(rate, 1000)) for rate in (1e-3, 1e-2)]
    model = TraceModel.fit(runs, clock="log", intervals=6)
    q = model.quantile(0.5, [1e-3, 1e-2], start=runs[0].head(1))
    assert q[1] < q[0] < 3.5


@pytest.mark.parametrize(("order", "summed_rate"), [(1, False), (2, True)])
def test_draws_continue_the_run_so_far(order: int, summed_rate: bool) -> None:
    """The same normals by `draw` of a schedule and by `draw_batch` of its rates; the run so far may be a clone."""
    family = [run for task, shift in (("a", 0.0), ("b", 1.0), ("c", 2.0)) for run in task_runs(task, 2, shift=shift)]
    model = TraceModel.fit(family, tasks=1, order=order, summed_rate=summed_rate, lr=(1e-4, 1e-1))
    (run,) = task_runs("c", 1, seed=9, shift=2.0)
    parent = run.head(41)
    clone = parent.fork(run.steps[41:61], run.values[41:61], run.schedule)
    for so_far in (parent, clone):
        drawn = model.draw(NEW_SCHEDULE, start=so_far, draws=40, generator=torch.Generator().manual_seed(0))
        ahead = model.encoder.future(NEW_SCHEDULE, so_far.last_step)
        normals = Normals.draw(model.link.latents, 40, len(ahead.lengths), torch.Generator().manual_seed(0))
        number, x, lengths = torch.tensor(2), torch.tensor(ahead.unit_lr), torch.tensor(ahead.lengths)
        draw_batch = partial(model.draw_batch, x, number, normals, lengths)
        torch.testing.assert_close(draw_batch(start=so_far).values, drawn.values)
        state = model.run_state(number, normals, so_far)
        torch.testing.assert_close(state.values[0], drawn.values[:, 0])
        fresh = model.run_state(number, normals)
        assert float((fresh.values[0] - state.values[0]).abs().min()) > 0
        torch.testing.assert_close(draw_batch().values[:, 0], fresh.values[0])


def test_the_latent_grid_has_the_marginals_of_its_points() -> None:
    runs = [run for task in "ab" for run in task_runs(task, 2)]
    model = TraceModel.fit(runs, tasks=1, order=2)
    values, x = np.array([0.2, 0.8]), np.array([0.0, 0.5, 1.0])
    mean, variance = model.latent_grid(values, x, "b")
    assert mean.shape == variance.shape == (1, 2, 3)
    point = torch.tensor([[0.8, 0.8, 0.5, 0.5, 1.0]]).double()
    exact = model.posterior.marginal(point)
    torch.testing.assert_close(torch.stack([mean[:, 1, 1], variance[:, 1, 1]]), torch.stack([m[:, 0] for m in exact]))


def fitted() -> TraceModel:
    return TraceModel.fit([decay(1e-3), decay(1e-2)], intervals=5)


def quantile(alpha: float, rates: list[float], **options):
    return fitted().quantile(alpha, rates, start=decay(1e-2).head(3), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TraceModel.fit([]), "at least one trace, got none"),
        (
            lambda: TraceModel.fit([decay(1e-2)], mean="nonsense"),
            'mean must be "constant" or "law", got \'nonsense\'',
        ),  # pyright: ignore
        (lambda: quantile(0.5, []), r"candidates in \(0, inf\), got \[\]"),
        (lambda: quantile(0.5, [0.0]), r"candidates in \(0, inf\), got \[0.0\]"),
        (lambda: quantile(1.5, [1e-2]), r"alpha must lie in \(0, 1\)"),
        (lambda: quantile(0.5, [1e-2], stop=20), "after step 20"),
        (lambda: TraceModel.fit([decay(1e-2).head(1)]), r"got 0 interval\(s\), 0 of them failed"),
        (lambda: TraceModel.fit([decay(1e-2, name="a"), decay(1e-3, name="a")]), r"several runs named \['a'\]: rename"),
        (lambda: TraceModel.fit([decay(1e-2)], order=4), r"1, 2 or 3, got 4: it is q of NARX\(q\)"),
        (
            lambda: TraceModel.fit([decay(1e-2)], link="quadratic"),
            "no link is registered as 'quadratic': use one",
        ),
        (lambda: TraceModel.fit([decay(1e-2)], intervals=1000), "between 1 and the 200 steps of the run, got 1000"),
        (lambda: TraceModel.fit([decay(1e-2)], intervals=[0, 50, 20]), "two increasing whole steps from 0 on"),
        (lambda: TraceModel.fit([decay(1e-2)], lr=(1e-1, 1e-3)), r"got \(0.1, 0.001\): swap them"),
        (lambda: TraceModel.fit([decay(1e-2)], lr=(0.0, 1e-3)), "0 < low < high"),
        (lambda: TraceModel.fit([decay(1e-2)], inducing=0), "inducing must be at least 1, got 0"),
        (lambda: TraceModel.fit([decay(1e-2)], tasks=-1), "number of dimensions of the embedding, got -1"),
        (lambda: TraceModel.fit([decay(1e-2), decay(1e-2, objective=Objective("max"))]), "share one objective, got 2"),
        (
            lambda: TraceModel.fit([decay(1e-2, scale=-1, objective=Objective(transform="log"))]),
            "needs positive values",
        ),
        (lambda: fitted().forecast(Schedule.constant(1e-2, 200), [50, 50]), "must increase"),
        (
            lambda: fitted().forecast(Schedule.constant(1e-2, 200), [5], start=decay(1e-2).head(3)),
            "from step 20 or later",
        ),
        (lambda: fitted().draw(Schedule.constant(1e-2, 200), draws=0), "draws must be at least 1, got 0"),
        (
            lambda: fitted().draw(Schedule.constant(1e-2, 200), unit_lr=torch.zeros(3).double()),
            "each of the 5 intervals to come",
        ),
    ],
)
def test_wrong_arguments_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
