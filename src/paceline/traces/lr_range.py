"""Bounds of the learning rate, and the map to the unit interval that models and strategies work in.

Rates act on a logarithmic scale, so the map from (low, high) to (0, 1) is logarithmic: x = 0.5 is the geometric mean.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError


@dataclass(frozen=True, slots=True)
class LearningRateRange:
    """Lower and upper bound of the learning rate (or of a multiplier of a base schedule).

    >>> LearningRateRange(1e-4, 1e-2).to_unit(1e-3)
    array(0.5)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.low) and np.isfinite(self.high)):
            raise InputError(f"bounds must be finite, got ({self.low}, {self.high}): pass two positive numbers")
        if self.low > self.high:
            raise InputError(f"bounds must satisfy 0 < low < high, got ({self.low}, {self.high}): swap them")
        if self.low <= 0 or self.low == self.high:
            raise InputError(
                f"bounds must satisfy 0 < low < high, got ({self.low}, {self.high}): "
                "rates are searched on a logarithmic scale, so pass two different positive numbers such as (1e-5, 1e-1)"
            )

    @classmethod
    def of(cls, bounds: "tuple[float, float] | LearningRateRange") -> "LearningRateRange":
        """The range itself, or the range of a pair (low, high)."""
        if isinstance(bounds, LearningRateRange):
            return bounds
        try:
            low, high = (float(bound) for bound in bounds)
        except (TypeError, ValueError) as error:
            raise InputError(f"bounds must be a pair (low, high), got {bounds!r}: pass e.g. (1e-5, 1e-1)") from error
        return cls(low, high)

    @classmethod
    def around(cls, log10_rates: Float[np.ndarray, "..."], *, margin: float = 0.5) -> "LearningRateRange":
        """The smallest range that holds these log10 rates; if all are equal, `margin` decades to both sides."""
        low, high = float(log10_rates.min()), float(log10_rates.max())
        if high - low < 1e-6:
            low, high = low - margin, high + margin
        return cls(10.0**low, 10.0**high)

    @property
    def decades(self) -> float:
        """Width of the range in powers of ten."""
        return float(np.log10(self.high) - np.log10(self.low))

    def to_unit(self, rate: "float | Float[np.ndarray, '...']") -> Float[np.ndarray, "..."]:
        """Rate -> x: 0 at `low`, 1 at `high`, linear in log10(rate)."""
        if not np.all(np.asarray(rate) > 0):
            raise InputError(f"rates must be positive, got {np.min(rate):.6g}: their logarithm is used")
        return self.log10_to_unit(np.asarray(np.log10(rate)))

    def log10_to_unit(self, log10_rate: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """log10(rate) -> x."""
        return np.asarray((log10_rate - np.log10(self.low)) / self.decades)

    def from_unit(self, x: "float | Float[np.ndarray, '...']") -> Float[np.ndarray, "..."]:
        """x -> rate: the inverse of `to_unit`."""
        return np.asarray(self.low * 10.0 ** (np.asarray(x, dtype=float) * self.decades))
