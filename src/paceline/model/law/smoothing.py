"""Smoothing of a run: its running mean, the noise around it, and means over equal parts of log steps."""

from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from paceline.model.law.settings import ROWS


def running_mean(steps: Int[np.ndarray, "n"], loss: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Mean over a window in log steps."""
    at, total = np.log(steps), np.concatenate([[0.0], np.cumsum(loss)])
    low, high = np.searchsorted(at, at - ROWS.window), np.searchsorted(at, at + ROWS.window, side="right")
    return (total[high] - total[low]) / (high - low)


def noise_level(level: Float[np.ndarray, "n"], loss: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Relative deviation of single observations around each step, from second differences, which have no trend.

    Args:
        level: the running mean.
        loss: the observations.
    """
    if len(loss) < 4:
        return np.full(len(loss), ROWS.unknown_noise)
    square = np.diff(loss / level, 2) ** 2 / 6.0
    square = np.concatenate([square[:1], square, square[-1:]])
    window = np.minimum(ROWS.noise_window, len(square))
    total = np.concatenate([[0.0], np.cumsum(square)])
    low = np.clip(np.arange(len(square)) - window // 2, 0, len(square) - window)
    return np.sqrt((total[low + window] - total[low]) / window + ROWS.least_noise**2)


def stretches(steps: Int[np.ndarray, "n"], most: int) -> Int[np.ndarray, "n"]:
    """The number of the stretch that each step is in; stretches are equal in log steps, and none is empty."""
    at = np.log(steps)
    width = max((at[-1] - at[0]) / most, 1e-9)
    return np.unique(np.minimum(((at - at[0]) / width).astype(int), most - 1), return_inverse=True)[1]


def averaging(stretch: Int[np.ndarray, "n"]) -> tuple[Float[np.ndarray, "rows n"], Float[np.ndarray, "rows"]]:
    """The matrix that takes the mean over each stretch, and how many observations each has."""
    mean = np.zeros((stretch[-1] + 1, len(stretch)))
    mean[stretch, np.arange(len(stretch))] = 1.0
    count = mean.sum(1)
    return mean / count[:, None], count


def thin(stretch: Int[np.ndarray, "n"], most: int = ROWS.states) -> Int[np.ndarray, "some"]:
    """Indices of at most so many observations, evenly from each stretch, with both ends of it."""
    if len(stretch) <= most:
        return np.arange(len(stretch))
    rows = int(stretch[-1]) + 1
    ends: list[int] = np.searchsorted(stretch, np.arange(rows + 1)).tolist()
    quota = max(1, most // rows)
    return np.unique(np.concatenate([np.linspace(a, b - 1, quota).astype(int) for a, b in pairwise(ends)]))
