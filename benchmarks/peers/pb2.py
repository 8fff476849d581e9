"""Population based bandits: as PBT, but the rate of a clone is where a Gaussian process expects the largest gain."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from benchmarks.peers import gaussian_process
from benchmarks.peers.population import Population, interval_borders
from paceline.strategy import Fork, History

LENGTHSCALES = np.geomspace(0.05, 1.0, 5)
FORGETTING = (0.0, 0.03, 0.1, 0.3, 0.5)
CANDIDATES = np.linspace(0.0, 1.0, 121)


@dataclass(frozen=True, slots=True)
class PopulationBasedBandits(Population):
    """PB2 (Parker-Holder, Nguyen, Roberts 2020, "Provably efficient online hyperparameter optimization with
    population-based bandits"): a clone's rate maximises a time-varying GP-UCB.

    The process is over (round t, rate x on a log scale in [0, 1]); what it models is the change of the objective over
    an interval, standardised and clipped to [-2, 2] as in the authors' code. Its kernel forgets,

    k((x, t), (x', t')) = s^2 exp(-(x - x')^2 / (2 l^2)) (1 - e)^(|t - t'| / 2),

    with hyperparameters of largest marginal likelihood (on a grid) and e at most 0.5. The acquisition is mean +
    sqrt(beta) deviation, beta = 0.2 log(0.4 n) of n observations; the mean is of real data, the deviation also knows
    what runs in this round already. Ours: an interval that failed counts as the worst change seen. The authors' code
    also feeds the value before the interval to the kernel; the paper does not, nor do we.
    """

    name: ClassVar[str] = "pb2"
    share: float = 0.25

    def explore(
        self, history: History, parents: Sequence[Fork], remaining: Sequence[Fork], rng: np.random.Generator
    ) -> list[tuple[float, str]]:
        """Maximise the upper confidence bound, one clone after the other."""
        points, change = changes(history, interval_borders(history.goal.steps, self.intervals))
        now, to_unit = float(history.round), history.goal.lr_range.to_unit
        pending = [[now, float(to_unit(fork.multiplier))] for fork in remaining]
        chosen = list[tuple[float, str]]()
        for _ in parents:
            bound = upper_bound(points, change, np.array(pending).reshape(-1, 2), now, CANDIDATES)
            x = float(CANDIDATES[int(np.argmax(bound))])
            pending.append([now, x])
            chosen.append(
                (float(history.goal.lr_range.from_unit(x)), f"its upper bound, {bound.max():.3g}, is highest")
            )
        return chosen


def changes(history: History, points: Sequence[int]) -> tuple[Float[np.ndarray, "n 2"], Float[np.ndarray, "n"]]:
    """(round, unit rate) and improvement of every interval of every fork, improvements standardised and clipped."""
    goal = history.goal
    rows, gains = list[list[float]](), list[float]()
    for fork in history.forks:
        if fork.trace is None:
            continue
        steps, values = fork.trace.path()
        for k, (begin, end) in enumerate(pairwise(points)):
            inside = values[(steps > begin) & (steps <= end)]
            if end <= fork.start or not len(inside):
                continue
            before = values[steps <= begin]
            rate = float(fork.schedule.multiplier(begin))
            rows.append([float(k), float(goal.lr_range.to_unit(rate))])
            gains.append(goal.objective.sign * float(inside[-1] - (before[-1] if len(before) else inside[0])))
    y = np.array(gains)
    y = np.where(np.isfinite(y), y, np.min(y, initial=0.0, where=np.isfinite(y)))
    spread = float(y.std())
    return np.array(rows), np.clip((y - y.mean()) / spread, -2, 2) if spread > 0 else np.zeros(len(y))


def kernel(
    a: Float[np.ndarray, "n 2"], b: Float[np.ndarray, "m 2"], lengthscale: float, forgetting: float
) -> Float[np.ndarray, "n m"]:
    """exp(-(x - x')^2 / (2 l^2)) (1 - e)^(|t - t'| / 2)."""
    gap = (a[:, None, 1] - b[None, :, 1]) / lengthscale
    return np.exp(-0.5 * gap**2) * (1 - forgetting) ** (np.abs(a[:, None, 0] - b[None, :, 0]) / 2)


def upper_bound(
    points: Float[np.ndarray, "n 2"],
    change: Float[np.ndarray, "n"],
    pending: Float[np.ndarray, "p 2"],
    now: float,
    x: Float[np.ndarray, "m"],
) -> Float[np.ndarray, "m"]:
    """Mean from what was observed, plus sqrt(beta) times the deviation that also knows the pending points."""
    grid = [(lengthscale, forgetting) for lengthscale in LENGTHSCALES for forgetting in FORGETTING]
    best = gaussian_process.fit([kernel(points, points, *hyper) for hyper in grid], change)
    hyper, query = grid[best.kernel], np.stack([np.full(len(x), now), x], 1)
    mean = gaussian_process.mean_at(kernel(points, points, *hyper), kernel(points, query, *hyper), change, best.noise)
    observed = np.concatenate([points, pending])
    variance = gaussian_process.variance_at(
        kernel(observed, observed, *hyper), kernel(observed, query, *hyper), best.noise
    )
    beta = max(0.0, 0.2 * np.log(0.4 * len(points)))
    return mean + np.sqrt(beta * best.variance * variance)
