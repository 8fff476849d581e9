"""Population based training, and its Bayesian successor: a population runs to the end, its worst clone its best.

They differ in one thing, the rate that a clone gets: perturbed at random, or where a Gaussian process expects most.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError
from paceline.shapes import Constant
from paceline.strategy.base import Decision, Fork, Goal, History, Interval, Strategy
from paceline.strategy.baselines import regression
from paceline.traces import Objective, Schedule


@dataclass(frozen=True, slots=True)
class Population(Strategy):
    """A population that exploits (the worst clone the best) and explores (clones get rates of their own).

    Args:
        forks: size of the population, which runs to the end.
        intervals: how often it exploits and explores.
        share: of the population that is replaced, at least one.
    """

    name: ClassVar[str]
    forks: int = 5
    intervals: int = 20
    share: float = 0.2

    def __post_init__(self) -> None:
        if self.forks < 1 or self.intervals < 1 or not 0 < self.share <= 0.5:
            raise InputError(
                "expected at least one fork and one interval, and a share in (0, 0.5], "
                f"got {self.forks}, {self.intervals} and {self.share}"
            )

    @abstractmethod
    def explore(
        self, history: History, parents: Sequence[Fork], kept: Sequence[Fork], rng: np.random.Generator
    ) -> list[tuple[float, str]]:
        """The rate of a clone of each parent, and why, given the forks that go on as they are."""

    def objective(self, objective: Objective) -> Objective:
        """As published: the value now."""
        return Objective(objective.mode, "identity", "raw")

    def total_steps(self, goal: Goal) -> int:
        """The whole population, to the end."""
        return self.forks * goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        return {"strategy": self.name, **{name: getattr(self, name) for name in [field.name for field in fields(self)]}}

    def propose(self, history: History) -> Decision:
        """Start at random, exploit and explore, end."""
        goal = history.goal
        points = _points(goal.steps, self.intervals)
        rng = np.random.default_rng([goal.seed, 2, history.round])
        if not history.forks:
            rates = goal.lr_range.from_unit(rng.uniform(size=self.forks))
            proposals = tuple(
                Interval(i, None, 0, points[1], Schedule([r], [0, points[1]], goal.steps, Constant()), 1)
                for i, r in enumerate(rates)
            )
            return Decision(proposals, reasons=(f"a population of {self.forks} at random rates",))
        ranked = history.ranked()
        if not ranked:
            return Decision(reasons=("every fork failed: lower the upper bound of the rate",))
        if history.round >= self.intervals:
            return Decision(winner=ranked[0].id, reasons=("the population is at its end",))
        return self._exploit(history, ranked, points[history.round + 1], rng)

    def _exploit(self, history: History, ranked: list[Fork], stop: int, rng: np.random.Generator) -> Decision:
        """The best go on; the worst, and those that failed, become clones of the best."""
        start, number = int(ranked[0].schedule.change_points[-1]), history.round + 1
        replaced = max(1, round(self.share * self.forks)) if self.forks > 1 else 0
        kept, best = ranked[: self.forks - replaced], ranked[: max(1, replaced)]
        parents = [best[int(rng.integers(len(best)))] for _ in range(self.forks - len(kept))]
        proposals = [Interval(f.id, None, start, stop, f.schedule.extend(f.multiplier, stop), number) for f in kept]
        fresh, reasons = max(fork.id for fork in history.forks) + 1, list[str]()
        for i, (parent, (rate, why)) in enumerate(zip(parents, self.explore(history, parents, kept, rng), strict=True)):
            schedule = parent.schedule.extend(rate, stop)
            proposals.append(Interval(fresh + i, parent.id, start, stop, schedule, number))
            reasons.append(f"fork {fresh + i} begins as a clone of fork {parent.id} at {rate:.3g}: {why}")
        drops = tuple((fork.id, "among the worst of the population") for fork in ranked[len(kept) :])
        return Decision(tuple(proposals), drops, reasons=tuple(reasons) or ("the only fork goes on",))


@dataclass(frozen=True, slots=True)
class PopulationBasedTraining(Population):
    """Population based training (Jaderberg et al. 2017, "Population based training of neural networks").

    As published: truncation selection (the worst 20 % copy weights and rate of one of the best 20 %, drawn evenly),
    then the rate is multiplied by 0.8 or 1.25.

    Args:
        factors: the perturbations.
    """

    name: ClassVar[str] = "pbt"
    factors: tuple[float, float] = (0.8, 1.25)

    def explore(
        self, history: History, parents: Sequence[Fork], kept: Sequence[Fork], rng: np.random.Generator
    ) -> list[tuple[float, str]]:
        """Perturb."""
        factors = [self.factors[int(rng.integers(2))] for _ in parents]
        low, high = history.goal.lr_range.low, history.goal.lr_range.high
        return [
            (float(np.clip(parent.multiplier * factor, low, high)), f"{factor} times its rate")
            for parent, factor in zip(parents, factors, strict=True)
        ]


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
        self, history: History, parents: Sequence[Fork], kept: Sequence[Fork], rng: np.random.Generator
    ) -> list[tuple[float, str]]:
        """Maximise the upper confidence bound, one clone after the other."""
        points, change = changes(history, _points(history.goal.steps, self.intervals))
        now, to_unit = float(history.round), history.goal.lr_range.to_unit
        pending = [[now, float(to_unit(fork.multiplier))] for fork in kept]
        chosen = list[tuple[float, str]]()
        for _ in parents:
            bound = upper_bound(points, change, np.array(pending).reshape(-1, 2), now, CANDIDATES)
            x = float(CANDIDATES[int(np.argmax(bound))])
            pending.append([now, x])
            chosen.append(
                (float(history.goal.lr_range.from_unit(x)), f"its upper bound, {bound.max():.3g}, is highest")
            )
        return chosen


def _points(steps: int, intervals: int) -> list[int]:
    points = [round(k * steps / intervals) for k in range(intervals + 1)]
    if any(b <= a for a, b in pairwise(points)):
        raise InputError(f"{steps:,} steps are too few for {intervals} intervals: train longer or use fewer intervals")
    return points


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
    best = regression.fit([kernel(points, points, *hyper) for hyper in grid], change)
    hyper, asked = grid[best.kernel], np.stack([np.full(len(x), now), x], 1)
    mean = regression.mean_at(kernel(points, points, *hyper), kernel(points, asked, *hyper), change, best.noise)
    known = np.concatenate([points, pending])
    variance = regression.variance_at(kernel(known, known, *hyper), kernel(known, asked, *hyper), best.noise)
    beta = max(0.0, 0.2 * np.log(0.4 * len(points)))
    return mean + np.sqrt(beta * best.variance * variance)
