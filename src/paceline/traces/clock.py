"""Time as the models see it: steps, or the logarithm of the step."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from paceline.errors import InputError

ClockName = Literal["step", "log"]
# Share of the run at which the log clock starts (docs/research.md, "Forecasting language-model curves with NARX").
LOG_ORIGIN = 0.01


@dataclass(frozen=True, slots=True)
class Clock:
    """Time along a run of `steps` steps: the step itself, or its logarithm from 1 % of the run on."""

    name: ClockName
    steps: int

    def __post_init__(self) -> None:
        if self.name not in ("step", "log"):
            raise InputError(f'clock must be "step" or "log", got {self.name!r}: pick one of these')

    @property
    def origin(self) -> int:
        """The step at which the clock starts."""
        return 0 if self.name == "step" else max(1, round(LOG_ORIGIN * self.steps))

    def __call__(self, step: Float[np.ndarray, "*s"] | Int[np.ndarray, "*s"]) -> Float[np.ndarray, "*s"]:
        """Time at a step: 0 at the origin, increasing."""
        at = np.maximum(np.asarray(step, dtype=float), self.origin)
        return np.asarray(at if self.name == "step" else np.log(at / self.origin))

    def equal_intervals(self, intervals: int) -> Int[np.ndarray, "points"]:
        """Change points of intervals that are equally long on this clock."""
        if not 1 <= intervals <= self.steps:
            raise InputError(f"intervals must be between 1 and the {self.steps:,} steps of the run, got {intervals}")
        if self.name == "step":
            points = np.linspace(0, self.steps, intervals + 1)
        else:
            points = np.geomspace(self.origin, self.steps, intervals + 1)
        return np.unique(points.round().astype(int))
