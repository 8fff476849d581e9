"""A forecast: draws of a trace at given steps, in the user's units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from paceline.errors import InputError


def check_steps(steps: "Sequence[int] | np.ndarray", begin: int) -> Int[np.ndarray, "steps"]:
    """The steps to forecast as an array; an error unless they increase from `begin` on."""
    at = np.atleast_1d(np.asarray(steps, dtype=int))
    if at.ndim != 1 or at.size == 0 or np.any(np.diff(at) <= 0) or at[0] < begin:
        raise InputError(
            f"steps to forecast must increase, from step {begin:,} or later, got {at.tolist()[:5]}: "
            "the run cannot be forecast before its start or its last observation"
        )
    return at


def check_draws(draws: int) -> None:
    """Raise an error unless there is at least one draw."""
    if draws < 1:
        raise InputError(f"draws must be at least 1, got {draws}: 1000 give steady quantiles")


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """Draws of a run that is yet to come.

    Args:
        steps: the steps of the forecast.
        draws: one row per draw, in the user's units.
    """

    steps: Int[np.ndarray, "steps"]
    draws: Float[np.ndarray, "draws steps"]

    @property
    def mean(self) -> Float[np.ndarray, "steps"]:
        """Mean over the draws."""
        return self.draws.mean(0)

    @property
    def median(self) -> Float[np.ndarray, "steps"]:
        """Median over the draws."""
        return self.quantile(0.5)

    def quantile(self, level: float) -> Float[np.ndarray, "steps"]:
        """The value that a share `level` of the draws is below, at each step."""
        return np.quantile(self.draws, level, axis=0)

    def band(self, coverage: float) -> tuple[Float[np.ndarray, "steps"], Float[np.ndarray, "steps"]]:
        """Lower and upper end of the central band that holds a share `coverage` of the draws."""
        if not 0 < coverage < 1:
            raise InputError(f"coverage must be a share in (0, 1), got {coverage}: 0.9 for a 90 % band")
        return self.quantile(0.5 - coverage / 2), self.quantile(0.5 + coverage / 2)
