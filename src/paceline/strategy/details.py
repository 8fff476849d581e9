"""What a view shows of a decision, taken from the model while it is at hand: no view fits one (docs/journal.md).

All of it costs a few milliseconds and nothing in it decides anything.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from paceline.model import FailureModel, Forecaster, TraceModel, latent_input, tensor
from paceline.strategy.base import History
from paceline.study import Interval

QUANTILES, DRAWS, POINTS = (0.05, 0.5, 0.95), 200, 5
VALUES, RATES = 12, 24


def forecasts(
    model: Forecaster,
    history: History,
    intervals: Sequence[Interval],
    *,
    weights: str,
    to_the_end: bool = False,
) -> list[dict[str, Any]]:
    """The 90 % band of each proposal's trace, at a handful of steps up to the next decision, or of raw values to T."""
    bands = list[dict[str, Any]]()
    for p in intervals:
        before = history.fork(p.fork if p.parent is None else p.parent)
        past, stop = (before.raw, history.goal.steps) if to_the_end else (before.trace, p.stop)
        if past is None:
            continue
        steps = np.unique(np.linspace(p.start, stop, POINTS + 1).round().astype(int)[1:])
        random = torch.Generator().manual_seed(p.fork)
        ahead = model.forecast(p.schedule, steps[steps > past.last_step], start=past, draws=DRAWS, generator=random)
        low, median, high = np.quantile(ahead.draws, QUANTILES, axis=0)
        band = {"steps": ahead.steps, "low": low, "median": median, "high": high}
        bands.append({"fork": p.fork, "weights": weights, **band})
    return bands


def surface(model: TraceModel, failures: FailureModel | None = None, *, now: Sequence[float] = ()) -> dict[str, Any]:
    """Mean and deviation of each latent function over a grid of values (rows) and rates (columns).

    The grid reaches from the worst value that an interval began at, and did not fail, to the values that forks stand at
    `now`. A model of higher order is shown where value and rate have not changed lately. With `failures` also P(fail).
    """
    frame, order = model.encoder, model.encoder.segmenter.order
    began, failed = frame.inputs(model.segments)[:, 0].numpy(), model.failed()
    kept = began if failed.all() else began[~failed]  # one that came apart would leave the others in a single row
    here = frame.scaling.to_scaled(frame.segmenter.objective.to_model(np.array(now, dtype=float)))
    seen = np.concatenate([kept, here[np.isfinite(here)]])
    values = tensor(np.linspace(float(seen.min()), float(seen.max()), VALUES))
    x = np.linspace(0.0, 1.0, RATES)
    grid = torch.meshgrid(values, tensor(x), indexing="ij")
    mean, variance = model.posterior.marginal(latent_input([grid[0]], [grid[1]], order, None))
    asked = np.stack([axis.numpy().ravel() for axis in grid], -1)
    p_fail = {} if failures is None else {"p_fail": failures.probability(asked).reshape(VALUES, RATES)}
    return {
        "values": frame.to_user(values),
        "rates": frame.scaling.lr_range.from_unit(x),
        "latents": [{"mean": m.numpy(), "deviation": v.sqrt().numpy()} for m, v in zip(mean, variance, strict=True)],
        **p_fail,
    }


def rounded(value: Any) -> Any:
    """Plain data with floats to six significant digits: lines of the journal stay small."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return rounded(value.tolist())
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return float(f"{value:.6g}") if isinstance(value, float) else value
