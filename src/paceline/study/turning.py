"""When a run has turned for the worse for good, as one that overfits does: the rest of it is not worth its steps.

A rise alone says little. At a high rate the values of a healthy run may rise for a third of its length and fall far
lower once the rate does. So a rise counts if it goes on while the rate falls, or if it undoes a good part of what the
run had gained. It is told from noise by means over parts of it, and by the differences of neighbouring values.
docs/research.md, "Runs that turn", has the runs that the numbers below were set on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from paceline.study.reasons import Failure
from paceline.traces import Schedule


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """How much it takes to call a rise a turn. Shares are of a run's steps unless said otherwise."""

    # The rise lasts at least this share of the age of the best value, ...
    min_age: float = 0.25
    # ... and this share of the run.
    min_share: float = 0.05
    # The means over so many equal parts of it all rise, ...
    parts: int = 4
    # ... each part of at least so many observations, ...
    min_observations: int = 2
    # ... by so many standard errors from the first to the last.
    deviations: float = 3.0
    # It counts if the mean rate falls from part to part too, in all to this share, ...
    falling_rate: float = 0.85
    # ... and if it undoes this share of what the run had gained: five times as much as healthy runs showed there.
    lost_at_falling_rate: float = 0.01
    # At any rate it counts if it undoes this share: four times as much.
    lost: float = 0.25


TURN = TurnSettings()


@dataclass(frozen=True, slots=True, eq=False)
class TurnRule:
    """When an interval ends early, because the run has turned.

    Args:
        sign: +1 if bigger values are better, -1 if smaller ones are.
        weights: the weights whose values are followed, "raw" or "averaged"; the others if these are not observed.
        steps, values: what the run observed before the interval.
    """

    sign: float
    weights: str
    steps: np.ndarray
    values: np.ndarray

    def failure(
        self, schedule: Schedule, steps: Sequence[int], values: Mapping[str, Sequence[float]]
    ) -> Failure | None:
        """The end of a run that has turned, given what the interval observed so far; None if it has not."""
        column = values.get(self.weights) or next(iter(values.values()), ())
        at = np.concatenate([self.steps, np.array(steps, dtype=int)])
        losses = -self.sign * np.concatenate([self.values, np.array(column)])
        best = turned_at(at, losses, schedule)
        if best is None:
            return None
        return Failure("turned", message=f"{-self.sign * losses[best]:.6g}", step=int(at[best]))


def turned_at(steps: np.ndarray, losses: Float[np.ndarray, "n"], schedule: Schedule) -> int | None:
    """The index of the best value of a run that has turned; None if it has not."""
    best, now = int(np.argmin(losses)), steps[-1]
    if now - steps[best] < max(TURN.min_age * steps[best], TURN.min_share * schedule.steps):
        return None
    later, rates = losses[best + 1 :], schedule(np.maximum(steps[best + 1 :] - 1, 0))
    if len(later) < TURN.parts * TURN.min_observations or not _rises(later, losses):
        return None
    gained = losses[0] - losses[best]
    lost = (np.mean(_parts(later)[-1]) - losses[best]) / gained if gained > 0 else np.inf
    return best if lost > (TURN.lost_at_falling_rate if _falls(rates) else TURN.lost) else None


def _rises(values: Float[np.ndarray, "k"], losses: Float[np.ndarray, "n"]) -> bool:
    """Whether values rise from part to part by more than their noise, which is that of all losses."""
    parts = _parts(values)
    means = np.array([part.mean() for part in parts])
    noise = np.median(np.abs(np.diff(losses, 2))) / (0.6745 * 6**0.5)  # second differences have no trend
    error = noise * np.sqrt(1 / len(parts[0]) + 1 / len(parts[-1]))
    return bool(np.all(np.diff(means) > 0) and means[-1] - means[0] > TURN.deviations * error)


def _falls(rates: Float[np.ndarray, "k"]) -> bool:
    """Whether the rate falls from part to part, as in a decay: a single drop would be followed by a gain."""
    means = np.array([part.mean() for part in _parts(rates)])
    return bool(np.all(np.diff(means) < 0) and means[-1] <= TURN.falling_rate * means[0])


def _parts(values: Float[np.ndarray, "k"]) -> list[np.ndarray]:
    return np.array_split(values, TURN.parts)
