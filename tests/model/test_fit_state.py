"""Updates of a fit: growth, units, starts, new observations."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from paceline import InputError, Objective, Schedule, Trace, TraceModel
from tests.model.example_runs import NEW_SCHEDULE, decay, drawn_runs, family_runs, task_runs


def test_an_update_ends_where_a_new_fit_does() -> None:
    runs = drawn_runs("linear", 6, intervals=8)
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


def test_an_update_without_learning_keeps_the_hyperparameters() -> None:
    model = TraceModel.fit(family_runs(2), tasks=2)
    more = model.update(task_runs("a", 1, seed=5), learn=False)
    torch.testing.assert_close(more.posterior.hyper.free(), model.posterior.hyper.free())
    before, after = (m.draw(NEW_SCHEDULE, task="a", draws=400).latents.var() for m in (model, more))
    assert float(after) < 1.05 * float(before)


def test_an_update_after_which_every_interval_failed_is_refused() -> None:
    model = TraceModel.fit([decay(1e-2, name="r").head(4)], intervals=1)
    short = decay(1e-2, name="r").head(4)
    broken = replace(short, steps=np.append(short.steps, 40), values=np.append(short.values, np.nan), failed=True)
    with pytest.raises(InputError, match="every interval has failed"):
        model.update([broken], learn=False)


def test_an_update_with_another_objective_is_refused() -> None:
    model = TraceModel.fit([decay(1e-3), decay(1e-2)], intervals=5)
    with pytest.raises(InputError, match="update takes traces with the objective"):
        model.update([decay(1e-2, objective=Objective("max"))])


def settling_run(lr: float, seed: int) -> Trace:
    """A run that drops at once in each of its two intervals, and then stays where it is."""
    steps, rng = np.arange(0, 201, 10), np.random.default_rng(seed)
    levels = np.where(steps == 0, 1.0, np.where(steps <= 100, 0.5 + lr, 0.2 + lr))
    values = levels * np.exp(0.02 * rng.standard_normal(len(steps)))
    objective = Objective(transform="log")
    return Trace(steps, values, Schedule([lr, lr], [0, 100, 200]), objective=objective, name=f"{lr} {seed}")


def test_a_fit_to_the_ends_of_intervals_forecasts_ends_of_runs_that_settle() -> None:
    runs = [settling_run(lr, seed) for seed, lr in enumerate(np.geomspace(0.01, 0.1, 8))]
    new = settling_run(0.05, 99)
    errors = dict[float, float]()
    for share in (0.3, 1.0):
        model = TraceModel.fit(runs, intervals=[0, 100, 200], link="signed", lr=(1e-3, 1.0), end_share=share)
        median = model.forecast(new.schedule, [200], draws=400).median[0]
        errors[share] = abs(float(np.log(median / new.last_value)))
    assert errors[0.3] < 0.5 * errors[1.0]


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"end_share must lie in \(0, 1\], got 0"):
        TraceModel.fit([decay(1e-3), decay(1e-2)], intervals=5, end_share=0)
