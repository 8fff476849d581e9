"""AutoLRS (Jin et al. 2021, ICLR, "AutoLRS: automatic learning-rate schedule by Bayesian optimization on the fly").

A run goes by stages of tau steps at one rate each; tau doubles from stage to stage up to a limit. Before each stage,
short trials of tau' steps from the same state try rates one after the other. The loss of a trial after tau steps is
forecast by an exponential fitted to it, the forecasts feed a Gaussian process over log rates, and the lower confidence
bound picks the next rate to try. The rate with the best forecast runs the stage.

Kept as published: ten trials of tau' = tau / 10 (the search then costs one more run), a random first rate, Matern-5/2,
a bound that all but explores (kappa 1000), and the best *tried* rate for the stage. Ours: stages are fractions of the
run; outliers of a trial are removed by one quadratic fit in place of repeated splines; a trial that fails counts as the
worst forecast so far. Left out: the warm-up phase of the authors' experiments, and their switch from training to
validation loss, since a training reports one kind. Trials are short: let the training report often.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from benchmarks.peers import gaussian_process
from paceline.errors import InputError
from paceline.shapes import Constant
from paceline.strategy import Decision, Fork, Goal, History, Strategy
from paceline.study import Interval, as_reason, because
from paceline.traces import Objective, Schedule

LENGTHSCALES = np.geomspace(0.05, 2.0, 8)
CANDIDATES = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True, slots=True)
class AutoLRS(Strategy):
    """Search by short trials before each stage.

    Args:
        cost: total steps in units of one run; 2 as published. More makes trials longer.
        trials: rates tried before each stage.
        stages: lengths of the stages relative to each other; the default doubles three times.
        kappa: deviations below the mean at which a rate is judged when the next trial is chosen.
    """

    cost: float = 2.0
    trials: int = 10
    stages: tuple[int, ...] = (1, 2, 4, 8, 8, 8)
    kappa: float = 1000.0

    def __post_init__(self) -> None:
        if not 1 < self.cost <= 1 + self.trials:
            raise InputError(f"cost must lie in (1, {1 + self.trials}] for {self.trials} trials, got {self.cost}")
        if self.trials < 2 or not self.stages or min(self.stages) < 1:
            raise InputError(f"expected two trials and one stage at least, got {self.trials} and {self.stages}")

    def objective(self, objective: Objective) -> Objective:
        """As published: the loss itself."""
        return Objective(objective.mode, "identity", "raw")

    def total_steps(self, goal: Goal) -> int:
        """One run, and the trials of every stage."""
        return goal.steps + self.trials * sum(self._length(stage) for stage in pairwise(self.points(goal.steps)))

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        return {"strategy": "autolrs", **{name: getattr(self, name) for name in [field.name for field in fields(self)]}}

    def points(self, steps: int) -> list[int]:
        """Where stages begin and end."""
        points = [0, *(round(steps * part / sum(self.stages)) for part in accumulate(self.stages))]
        if any(self._length(stage) < 1 for stage in pairwise(points)):
            raise InputError(
                f"{steps:,} steps are too few for stages {self.stages} with {self.trials} trials each: "
                "every trial needs a step; train longer, spend more, or use fewer stages"
            )
        return points

    def _length(self, stage: tuple[int, int]) -> int:
        """tau': steps of a trial."""
        return int((self.cost - 1) * (stage[1] - stage[0]) / self.trials + 1e-9)

    def propose(self, history: History) -> Decision:
        """The next trial, or the stage, or the end. The run itself is the fork that follows the first trials."""
        goal, run = history.goal, next((fork for fork in history.forks if fork.id == self.trials), None)
        start = int(run.schedule.change_points[-1]) if run is not None else 0
        if run is not None and run.failure:
            return Decision(reasons=(as_reason("the stage failed although its trials did not: lower the upper bound"),))
        if run is not None and start == goal.steps:
            return Decision(winner=run.id, reasons=(because("ended best", fork=run.id, value=run.recent()),))
        points = self.points(goal.steps)
        stop = points[points.index(start) + 1]
        tried = [fork for fork in history.forks if fork.start == start and fork.id != self.trials]
        losses = self._losses(history, tried, stop)
        if len(tried) < self.trials:
            x = np.array([float(goal.lr_range.to_unit(fork.multiplier)) for fork in tried])
            first = float(np.random.default_rng([goal.seed, 3, start]).uniform())
            rate = goal.lr_range.from_unit(next_rate(x, losses, self.kappa) if tried else first)
            number, end = len(history.forks), start + self._length((start, stop))
            reason = f"trial {len(tried) + 1} of {self.trials} before step {start:,}"
        elif np.isfinite(losses).any():
            rate, number, end = tried[int(np.nanargmin(losses))].multiplier, self.trials, stop
            reason = f"its forecast at step {stop:,}, {np.nanmin(losses):.5g}, is the best of {self.trials} trials"
        else:
            return Decision(reasons=(as_reason("every trial failed: lower the upper bound of the rate"),))
        interval = self._interval(history, run, number, start, end, float(rate))
        drops = tuple((fork.id, as_reason("its trial is over")) for fork in tried if fork.alive)
        return Decision((interval,), drops, reasons=(as_reason(f"fork {number} runs at {rate:.3g}: {reason}"),))

    def _interval(
        self, history: History, run: Fork | None, number: int, start: int, stop: int, rate: float
    ) -> Interval:
        """A trial, which is a clone of the run, or the run itself."""
        parent = run.id if run is not None and number != run.id else None
        if run is None:
            schedule = Schedule([rate], [0, stop], history.goal.steps, Constant())
        else:
            schedule = run.schedule.extend(rate, stop)
        return Interval(number, parent, start, stop, schedule, history.round + 1)

    def _losses(self, history: History, tried: Sequence[Fork], stop: int) -> Float[np.ndarray, "tried"]:
        """The loss forecast for each trial at the end of the stage; NaN for a trial that failed."""
        losses = list[float]()
        for fork in tried:
            if fork.failure or fork.trace is None:
                losses.append(np.nan)
                continue
            elapsed = (fork.trace.steps - fork.start).astype(float)
            a, b, c = exponential(elapsed, -history.goal.objective.sign * fork.trace.values)
            losses.append(a * float(np.exp(b * (stop - fork.start))) + c)
        return np.array(losses)


def exponential(t: Float[np.ndarray, "n"], y: Float[np.ndarray, "n"]) -> tuple[float, float, float]:
    """a, b < 0 and c of the least-squares fit y = a exp(b t) + c, outliers left out.

    (a, c) are linear given b; b is found on a grid that closes in on the best. Fewer than four values say no more than
    where they end: a = 0.
    """
    if len(t) < 4 or not t[-1] > t[0]:
        return 0.0, -1.0, float(y[-1])
    if len(t) >= 8:
        miss = np.abs(y - np.polyval(np.polyfit(t, y, 2), t))
        sound = miss <= 4.5 * np.median(miss) + 1e-12  # three deviations, robustly
        t, y = t[sound], y[sound]
    span, low, high = float(t[-1] - t[0]), float(np.log(1e-3)), float(np.log(50.0))
    b, shape, a, best = np.array([]), np.array([]), np.array([]), 0
    for _ in range(6):
        grid = np.linspace(low, high, 25)
        b = -np.exp(grid) / span
        shape = np.exp(b[:, None] * t)
        centred = shape - shape.mean(1, keepdims=True)
        a = (centred @ y) / np.maximum((centred**2).sum(1), 1e-300)
        best = int(np.argmin(((y - y.mean() - a[:, None] * centred) ** 2).sum(1)))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 24)])
    return float(a[best]), float(b[best]), float(y.mean() - a[best] * shape[best].mean())


def matern(a: Float[np.ndarray, "n"], b: Float[np.ndarray, "m"], lengthscale: float) -> Float[np.ndarray, "n m"]:
    """Matern-5/2 of unit variance."""
    r = np.sqrt(5) * np.abs(a[:, None] - b) / lengthscale
    return (1 + r + r**2 / 3) * np.exp(-r)


def next_rate(x: Float[np.ndarray, "n"], losses: Float[np.ndarray, "n"], kappa: float) -> float:
    """The rate in [0, 1] with the lowest mean - kappa deviation, given the forecasts so far."""
    finite = np.isfinite(losses)
    y = np.where(finite, losses, np.max(losses, initial=-np.inf, where=finite)) if finite.any() else np.zeros(len(x))
    y = (y - y.mean()) / (y.std() or 1.0)
    best = gaussian_process.fit([matern(x, x, lengthscale) for lengthscale in LENGTHSCALES], y)
    gram = matern(x, x, LENGTHSCALES[best.kernel])
    cross = matern(x, CANDIDATES, LENGTHSCALES[best.kernel])
    deviation = np.sqrt(best.variance * gaussian_process.variance_at(gram, cross, best.noise))
    return float(CANDIDATES[int(np.argmin(gaussian_process.mean_at(gram, cross, y, best.noise) - kappa * deviation))])
