"""What every model of traces can do: forecast a run, and compare rates for its next interval.

`TraceModel` and `LawModel` both satisfy `Forecaster`. Code that only forecasts should ask for this type: it then works
with either.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int

from paceline.model.forecast import Forecast
from paceline.traces import Schedule, Trace


@runtime_checkable
class Forecaster(Protocol):
    """A fitted model that forecasts runs."""

    def forecast(
        self,
        schedule: Schedule,
        steps: "Sequence[int] | Int[np.ndarray, 'steps'] | None" = None,
        *,
        start: Trace | None = None,
        task: str | None = None,
        draws: int = 1000,
        noise: bool = True,
        generator: torch.Generator | None = None,
    ) -> Forecast:
        """Forecast a run under a schedule.

        Args:
            schedule: the learning rate, from step 0 of the run.
            steps: the steps to forecast; the model picks some by default.
            start: the run so far; a new run by default.
            task: the task of a new run, if the model has tasks.
            draws: how many traces to draw.
            noise: True to draw recorded values, False to draw the trace without observation noise.
            generator: source of randomness; a fresh one with seed 0 by default.
        """
        ...

    def quantile(
        self, alpha: float, rates: "Sequence[float] | np.ndarray", *, start: Trace, stop: int
    ) -> Float[np.ndarray, "*draws candidates"]:
        """The alpha-quantile of the value at step `stop`, for each candidate rate of the next interval.

        `alpha` is on the scale of improvement: 0.9 is optimistic for a loss and for an accuracy alike.
        """
        ...
