"""Scaling of values, times and rates to numbers near one, and back.

The constants are computed when a model is first fitted. An update keeps them, so that the hyperparameters stay valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from paceline.traces.lr_range import LearningRateRange
from paceline.traces.segments import Segment


@dataclass(frozen=True, slots=True)
class Scaling:
    """value -> (value - offset) / scale, elapsed -> elapsed / interval, control -> lr_range.

    Args:
        offset, scale: lowest value and range of values, in the model's units.
        interval: mean length of an interval, on the model's clock.
        lr_range: bounds of the control (the rate, or the multiplier of a base).
    """

    offset: float
    scale: float
    interval: float
    lr_range: LearningRateRange

    @classmethod
    def of(cls, segments: Sequence[Segment], lr: "tuple[float, float] | LearningRateRange | None" = None) -> "Scaling":
        """Constants that scale these intervals to about [0, 1]; `lr` fixes the bounds of the control."""
        low, high = _span(segments)
        magnitude = max(abs(low), abs(high))
        scale = high - low if high - low > 1e-9 * magnitude else magnitude or 1.0
        lengths = np.array([s.elapsed[-1] for s in segments if len(s.elapsed)])
        controls = np.array([s.controls for s in segments])
        lr_range = LearningRateRange.around(controls) if lr is None else LearningRateRange.of(lr)
        return cls(low, scale, float(lengths.mean()), lr_range)

    def is_outgrown_by(self, segments: Sequence[Segment], factor: float = 1.5) -> bool:
        """Whether the values now span more than `factor` times the range they are scaled by.

        docs/research.md, "The engine": fits get worse if the units stay fixed while values grow.
        """
        low, high = _span(segments) if segments else (self.offset, self.offset)
        return max(high, self.offset + self.scale) - min(low, self.offset) > factor * self.scale

    def to_scaled(self, values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Model's units -> scaled."""
        return (values - self.offset) / self.scale

    def to_model(self, values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Scaled -> model's units: the inverse of `to_scaled`."""
        return self.offset + self.scale * values


def _span(segments: Sequence[Segment]) -> tuple[float, float]:
    """Lowest and highest value observed."""
    lows = [s.start_values[0] + s.residuals.min(initial=0.0) for s in segments]
    highs = [s.start_values[0] + s.residuals.max(initial=0.0) for s in segments]
    return float(min(lows)), float(max(highs))
