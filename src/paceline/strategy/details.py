"""What a view shows of a decision, taken from the models while they are at hand: no view fits one (docs/journal.md).

All of it costs a few milliseconds, and none of it influences a decision.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from paceline.model import FailureModel, Forecaster, TraceModel, tensor
from paceline.strategy.base import History
from paceline.study import Interval

QUANTILES = (0.05, 0.5, 0.95)  # low, median and high of a forecast
DRAWS = 200  # of each forecast
FORECAST_STEPS = 5  # steps of each forecast
SURFACE_VALUES, SURFACE_RATES = 12, 24  # rows and columns of the latent surface


def forecast_bands(
    model: Forecaster,
    history: History,
    intervals: Sequence[Interval],
    *,
    weights: str,
    to_the_end: bool = False,
) -> list[dict[str, Any]]:
    """The median and 90 % band of the values of each interval, at a handful of steps.

    Args:
        model: what forecasts.
        history: everything observed so far.
        intervals: those that were proposed.
        weights: whose values the forecast is of, "raw" or "averaged".
        to_the_end: whether to forecast raw values to the end of the run, not only to the end of the interval.
    """
    bands = list[dict[str, Any]]()
    for interval in intervals:
        before = history.fork(interval.fork if interval.parent is None else interval.parent)
        past, stop = (before.raw, history.goal.steps) if to_the_end else (before.trace, interval.stop)
        if past is None:
            continue
        steps = np.unique(np.linspace(interval.start, stop, FORECAST_STEPS + 1).round().astype(int)[1:])
        generator = torch.Generator().manual_seed(interval.fork)
        forecast = model.forecast(
            interval.schedule, steps[steps > past.last_step], start=past, draws=DRAWS, generator=generator
        )
        low, median, high = np.quantile(forecast.draws, QUANTILES, axis=0)
        band = {"steps": forecast.steps, "low": low, "median": median, "high": high}
        bands.append({"fork": interval.fork, "weights": weights, **band})
    return bands


def latent_surface(
    model: TraceModel, failures: FailureModel | None = None, *, now: Sequence[float] = ()
) -> dict[str, Any]:
    """Mean and deviation of each latent function over a grid of values (rows) and rates (columns).

    A model of higher order is shown for runs whose value and rate have not changed lately.

    Args:
        model: the trace model.
        failures: the failure classifier, for P(fail) on the same grid.
        now: values of the forks. The grid reaches from the worst start of an interval that did not fail to these.
    """
    encoder = model.encoder
    starts, failed = encoder.inputs(model.segments)[:, 0].numpy(), model.failed()
    sound_starts = starts if failed.all() else starts[~failed]  # a diverged value would push all others into one row
    current = encoder.scaling.to_scaled(encoder.segmenter.objective.to_model(np.array(now, dtype=float)))
    shown = np.concatenate([sound_starts, current[np.isfinite(current)]])
    values, x = (
        np.linspace(float(shown.min()), float(shown.max()), SURFACE_VALUES),
        np.linspace(0.0, 1.0, SURFACE_RATES),
    )
    mean, variance = model.latent_grid(values, x)
    inputs = np.stack([axis.ravel() for axis in np.meshgrid(values, x, indexing="ij")], -1)
    p_fail = {} if failures is None else {"p_fail": failures.probability(inputs).reshape(SURFACE_VALUES, SURFACE_RATES)}
    return {
        "values": encoder.to_user(tensor(values)),
        "rates": encoder.scaling.lr_range.from_unit(x),
        "latents": [{"mean": m.numpy(), "deviation": v.sqrt().numpy()} for m, v in zip(mean, variance, strict=True)],
        **p_fail,
    }


def round_floats(value: Any) -> Any:
    """Plain data with floats to six significant digits: lines of the journal stay small."""
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return round_floats(value.tolist())
    if isinstance(value, list | tuple):
        return [round_floats(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return float(f"{value:.6g}") if isinstance(value, float) else value
