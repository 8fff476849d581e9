"""The law model from traces to forecasts: it recovers a known law, and takes what users bring."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from paceline import InputError, Objective, Schedule, Trace
from paceline.model.law import Caveat, LawModel
from tests.model.law import example_law

UNSEEN = Schedule.of("cosine", 0.05, 1000)
OTHERS = (UNSEEN, Schedule.of("linear", 0.1, 1500), Schedule.constant(0.02, 1000), Schedule.of("one_cycle", 0.1, 1000))
END = np.array([1000])


@cache
def fitted() -> LawModel:
    return LawModel.fit(example_law.runs())


def mapped(run: Trace, function: Callable[[np.ndarray], np.ndarray], **fields) -> Trace:
    """The same run with other values."""
    return replace(run, values=function(run.values), **fields)


def width(model: LawModel, schedule: Schedule = UNSEEN, **options) -> float:
    """Of the 90 % band at the end, in log units."""
    low, high = model.forecast(schedule, END, **options).band(0.9)
    return float(np.log(high / low)[0])


def error(model: LawModel, schedule: Schedule = UNSEEN, scale: float = 1.0) -> float:
    """Log of the median at the end over the truth."""
    return float(np.log(model.forecast(schedule, END, noise=False).median / example_law.loss(schedule, END) / scale)[0])


@pytest.mark.parametrize("schedule", OTHERS, ids=["cosine", "longer", "constant", "one_cycle"])
def test_a_known_law_is_recovered(schedule: Schedule) -> None:
    steps = np.arange(100, schedule.steps + 1, 100)
    forecast, truth = fitted().forecast(schedule, steps, noise=False), example_law.loss(schedule, steps)
    low, high = forecast.band(0.9)
    assert np.abs(np.log(forecast.median / truth)).mean() < 0.01
    assert np.mean((low <= truth) & (truth <= high)) >= 0.9
    assert np.log(high / low).max() < 0.2


def test_noise_and_the_same_seed() -> None:
    model = fitted()
    assert 0.005 < model.noise < 0.02  # it is 0.01
    one, other = (model.forecast(UNSEEN, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    np.testing.assert_array_equal(one.draws, other.draws)
    np.testing.assert_array_equal(model.forecast(UNSEEN, END).draws, model.forecast(UNSEEN, END).draws)
    again = LawModel.fit(example_law.runs())
    np.testing.assert_array_equal(again.law.coefficient_draws, model.law.coefficient_draws)
    assert model.forecast(UNSEEN).steps[-1] == 1000
    added = np.log(model.forecast(UNSEEN, END).draws / model.forecast(UNSEEN, END, noise=False).draws)
    np.testing.assert_allclose(added.std(), model.noise, rtol=0.1)  # same draws, but for the noise


def test_observations_of_a_run_make_its_forecast_better() -> None:
    model = fitted()
    run = example_law.run(UNSEEN, seed=77, until=700)
    unlucky = mapped(run, lambda values: 1.03 * values)  # an unlucky one
    assert width(model, start=run, noise=False) < width(model, noise=False)
    truth = 1.03 * example_law.loss(UNSEEN, np.array([720]))
    near, without = (model.forecast(UNSEEN, [720], start=start, noise=False).median for start in (unlucky, None))
    assert np.abs(near - truth) < np.abs(without - truth)
    now = model.forecast(UNSEEN, [700, 720], start=unlucky)  # the level now, and what comes next
    assert now.steps.tolist() == [700, 720]


def test_final_draws_of_several_schedules_share_their_parameters() -> None:
    model, slower = fitted(), Schedule.of("cosine", 0.049, 1000)
    draws = model.final([UNSEEN, slower, UNSEEN])
    np.testing.assert_array_equal(draws[:, 0], draws[:, 2])
    assert np.corrcoef(draws[:, 0], draws[:, 1])[0, 1] > 0.99


def test_quantiles_for_the_next_interval_are_ordered() -> None:
    start = example_law.runs()[2].head(20)
    low, middle, high = (fitted().quantile(a, [0.003, 0.03], start=start, stop=500) for a in (0.1, 0.5, 0.9))
    assert np.all((low >= middle) & (middle >= high))  # of improvement: a high quantile is a low loss
    with pytest.raises(InputError, match=r"alpha must lie in \(0, 1\), got 1.5"):
        fitted().quantile(1.5, [0.1], start=start, stop=500)


def test_one_run_at_one_rate_has_wide_bands_and_caveats() -> None:
    model = LawModel.fit([example_law.run(Schedule.constant(0.03, 1000))])
    assert model.caveats == (Caveat.ONE_RATE, Caveat.NO_CHANGE)
    assert fitted().caveats == ()
    for schedule in (UNSEEN, Schedule.of("linear", 0.003, 1000), Schedule.of("linear", 0.1, 1000)):
        low, high = model.forecast(schedule, END).band(0.9)
        assert low < example_law.loss(schedule, END) < high
        assert width(model, schedule) > 4 * width(fitted(), schedule)


def test_a_single_observation() -> None:
    run = example_law.run(Schedule.constant(0.03, 1000)).head(1)
    low, high = LawModel.fit([run]).forecast(run.schedule, [20, 1000]).band(0.9)
    assert low[0] < run.last_value < high[0]
    assert np.isfinite([low, high]).all()
    assert (high - low)[1] > (high - low)[0]


def test_runs_that_failed_count_until_they_failed() -> None:
    broken = example_law.run(Schedule.constant(0.5, 1000), seed=8, name="broken")
    values = broken.values.copy()
    values[20:23], values[23:] = [50.0, 1e20, 1e80], np.nan
    model = LawModel.fit([*example_law.runs(), replace(broken, values=values, failed=True)])
    assert abs(error(model)) < 0.02
    assert width(model) < 2 * width(fitted())
    alone = replace(broken, values=np.where(np.arange(50) < 1, values, np.nan), failed=True)
    assert np.isfinite(LawModel.fit([alone]).forecast(UNSEEN).draws).all()


def test_a_spike_hardly_changes_the_forecast() -> None:
    runs = example_law.runs()
    values = runs[3].values.copy()
    values[30] *= 2
    model = LawModel.fit([*runs[:3], replace(runs[3], values=values)])
    assert abs(error(model)) < 0.03  # noise is measured around each step, so a spike weighs little


@pytest.mark.parametrize(
    ("forth", "back", "mode"),
    [
        (lambda loss: np.exp(-0.3 * loss), lambda value: -np.log(value) / 0.3, "max"),
        (lambda loss: loss - 5, lambda value: value + 5, "min"),
        (lambda loss: 1e-9 * loss, lambda value: 1e9 * value, "min"),
    ],
    ids=["accuracy", "negative loss", "tiny loss"],
)
def test_values_of_other_kinds(forth: Callable, back: Callable, mode: str) -> None:
    model = LawModel.fit([mapped(run, forth, objective=Objective(mode)) for run in example_law.runs()])
    forecast = model.forecast(UNSEEN, END)
    low, high = forecast.band(0.9)
    assert low < forth(example_law.loss(UNSEEN, END)) < high
    np.testing.assert_allclose(back(forecast.median), example_law.loss(UNSEEN, END), rtol=0.03)


def test_values_that_do_not_move() -> None:
    run = example_law.run(Schedule.constant(0.03, 1000))
    for level in (0.0, 2.0):
        forecast = LawModel.fit([mapped(run, lambda v, at=level: np.full(len(v), at))]).forecast(UNSEEN)
        np.testing.assert_allclose(forecast.median, level, atol=0.02)


def test_sixty_runs() -> None:
    rng = np.random.default_rng(0)
    runs = [
        example_law.run(Schedule.of("linear", float(10 ** rng.uniform(-2.5, -1)), 400), seed=i, name=str(i))
        for i in range(60)
    ]
    model = LawModel.fit(runs)
    assert abs(error(model)) < 0.05
    low, high = model.forecast(UNSEEN, END).band(0.9)
    assert low < example_law.loss(UNSEEN, END) < high


def test_a_log_of_every_step() -> None:
    schedule = Schedule([0.05, 0.005], [0, 3000, 5000])
    steps = np.arange(1, 5001)
    run = Trace(steps, example_law.loss(schedule, steps), schedule)
    forecast = LawModel.fit([run]).forecast(schedule, [5000], start=run, noise=False)
    np.testing.assert_allclose(forecast.median, run.last_value, rtol=0.01)


def in_pieces(run: Trace, at: int) -> list[Trace]:
    """The same run as a parent that ends at a step and a fork that goes on."""
    first = int(np.searchsorted(run.steps, at, side="right"))
    parent = replace(run.head(first), name=f"{run.name} parent")
    return [parent, parent.fork(run.steps[first:], run.values[first:], run.schedule, name=f"{run.name} fork")]


def test_a_fork_starts_from_the_state_of_its_parent() -> None:
    # the parent's rate fell at 600, the fork begins at 700: most of what the fork does was decided before it
    runs, ahead = example_law.runs(), Schedule([0.1, 0.04, 0.01], [0, 600, 1000, 1400])
    whole, forked = fitted(), LawModel.fit([*runs[:3], *in_pieces(runs[3], 700)])
    one = whole.forecast(ahead, [1050, 1400], start=runs[3])
    other = forked.forecast(ahead, [1050, 1400], start=forked.traces[-1])
    np.testing.assert_allclose(other.median, one.median, rtol=0.01)
    (low, high), truth = other.band(0.9), example_law.loss(ahead, np.array([1050, 1400]))
    assert np.all((low <= truth) & (truth <= high))
    # a run that the fit has not seen: the same to the last digit, however it is recorded
    unlucky = example_law.run(UNSEEN, seed=5, until=800, name="unlucky")
    np.testing.assert_allclose(
        whole.forecast(UNSEEN, END, start=in_pieces(unlucky, 400)[1]).median,
        whole.forecast(UNSEEN, END, start=unlucky).median,
    )


def test_update_with_longer_runs_and_new_ones() -> None:
    runs = example_law.runs()
    early = LawModel.fit([run.head(15) for run in runs[:3]])
    late = early.update(runs)
    assert [trace.last_step for trace in late.traces] == [1000] * 4
    assert abs(error(late)) < 0.015
    assert error(late) == pytest.approx(error(fitted()), abs=0.01)
    assert width(late) < width(early)
    with pytest.raises(InputError, match="update takes traces with the objective"):
        early.update([mapped(runs[0], np.copy, objective=Objective("max"))])


def test_tasks_have_levels_of_their_own() -> None:
    def of(task: str, scale: float) -> list[Trace]:
        runs = [
            example_law.run(run.schedule, seed=10 + i, name=task + run.name) for i, run in enumerate(example_law.runs())
        ]
        return [mapped(run, lambda values: scale * values, task=task) for run in runs]

    few = [mapped(run, np.copy, task="small") for run in example_law.runs()[1:3]]
    model = LawModel.fit([*few, *of("large", 4.0)], tasks=2)
    assert model.tasks == ("large", "small")
    for task, scale in (("small", 1.0), ("large", 4.0)):
        forecast = model.forecast(UNSEEN, END, task=task)
        np.testing.assert_allclose(forecast.median, scale * example_law.loss(UNSEEN, END), rtol=0.05)
    plan = model.plan(steps=1000, lr=(1e-3, 0.1), task="large")
    assert plan.forecast.median[-1] > 2
    for task in (None, "medium"):
        with pytest.raises(InputError, match=r"task must be one of those fitted, .*: name the run's task"):
            model.forecast(UNSEEN, task=task)
    with pytest.raises(InputError, match=r"update takes runs of the tasks .*, got \['medium'\]: fit a new model"):
        model.update(of("medium", 2.0))


def test_wrong_arguments_say_what_to_do() -> None:
    model, run = fitted(), example_law.runs()[0]
    with pytest.raises(InputError, match="at least one finite value after the first step, got none in 1 run"):
        LawModel.fit([Trace(np.array([0]), np.array([1.0]), UNSEEN)])
    with pytest.raises(InputError, match="steps to forecast must increase, from step 1,000 or later"):
        model.forecast(UNSEEN, [500], start=run)
    with pytest.raises(InputError, match="steps to forecast must increase"):
        model.forecast(UNSEEN, [500, 400])
    with pytest.raises(InputError, match="draws must be at least 1, got 0: 1000 give"):
        model.forecast(UNSEEN, draws=0)


def test_a_schedule_shorter_than_the_ignored_beginning() -> None:
    assert fitted().forecast(Schedule.constant(0.1, 3)).steps.tolist() == [3]
