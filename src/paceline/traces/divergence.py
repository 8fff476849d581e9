"""Divergence: when a finite value is so bad that the run cannot be learnt from there, whatever the value means.

All else that fails is told by `is_sound`. What follows is the same for a loss, an accuracy and a likelihood, on any
scale: values are read as losses (smaller is better), and how far one lies above the first is measured by the size of
the first and by what the run has gained so far. A run that has gained little may rise far, since high rates often begin
so; one that had gained and has lost it all has diverged sooner.
"""

import numpy as np
from jaxtyping import Bool, Float

ABSURD = 9.0  # a value is absurd if it exceeds the first by so many times their size
UNDONE = 0.5  # that of a run which had gained as much as this, and has lost it all and as much again
DEVIATIONS = 3.0  # by more than so many deviations of the noise
FIRST_VALUES = 5  # these give the size of values that may have either sign


def observation_noise(values: Float[np.ndarray, "n"]) -> float:
    """Standard deviation of the noise of one observation; 0 if there are too few to tell."""
    # Second differences have no trend; their median ignores a spike.
    return float(np.median(np.abs(np.diff(values, 2)))) / (0.6745 * 6**0.5) if len(values) > 5 else 0.0


def excess(losses: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """How far each loss of a run exceeds the first, in units of the size of its values until then."""
    rise, gained = losses - losses[0], losses[0] - np.minimum.accumulate(losses)
    size = np.maximum(abs(losses[0]), gained)
    spread = np.maximum.accumulate(np.abs(rise[:FIRST_VALUES]))
    spread = np.concatenate([spread, np.full(len(losses) - len(spread), spread[-1])])
    is_positive = np.minimum.accumulate(losses) > 0  # then the first loss itself says what is large
    size = np.where(is_positive, size, np.maximum(size, spread))
    return np.divide(rise, size, out=np.zeros_like(rise), where=size > 0)


def is_absurd(losses: Float[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Which losses of a run are finite and absurd: ten times the first and more, if losses are positive."""
    return excess(losses) > ABSURD if len(losses) else np.zeros(0, dtype=bool)


def has_diverged(losses: Float[np.ndarray, "n"]) -> bool:
    """Whether a run has diverged where its observations end."""
    if len(losses) < 2:
        return False
    beyond = float(excess(losses)[-1])
    if beyond <= UNDONE:
        return False
    size, gained = (losses[-1] - losses[0]) / beyond, losses[0] - losses.min()
    is_undone = gained > UNDONE * size and beyond * size > UNDONE * size + DEVIATIONS * observation_noise(losses)
    return beyond > ABSURD or bool(is_undone)


def lies_far_above(losses: Float[np.ndarray, "n"]) -> Bool[np.ndarray, "n"]:
    """Which losses of a run lie above the first by half the size of its values."""
    return excess(losses) > UNDONE if len(losses) else np.zeros(0, dtype=bool)


def ended_worse(losses: Float[np.ndarray, "n"]) -> bool:
    """Whether a run that is over ended far above its first loss, and not by noise.

    This is how a bounded value diverges. While a run goes on it says little: high rates often begin so.
    """
    if not lies_far_above(losses)[-1:].any():
        return False
    return float(losses[-1] - losses[0]) > DEVIATIONS * observation_noise(losses)
