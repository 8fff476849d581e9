"""A check that a model makes a usable forecast."""

import numpy as np

from paceline import Schedule, Trace, TraceModel


def check_forecast(model: TraceModel, schedule: Schedule, start: Trace | None = None) -> np.ndarray:
    """Check that draws are finite and bands have a width; return the mean."""
    forecast = model.forecast(schedule, start=start, draws=100)
    assert np.isfinite(forecast.draws).all()
    assert np.isfinite(model.bound)
    low, high = forecast.band(0.9)
    assert np.all(high > low)
    return forecast.mean
