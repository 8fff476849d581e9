"""A good start for a new task of a known family (paper, section 4.4), and the step that the paper left open.

`universal` runs the schedule that is best on average over where the task may lie. `probe` spends the first intervals on
learning where it lies, then runs what is best given that. `dynamic` plans the rest of the run anew at every change
point, from where the run stands and from all it has shown; either as if the task lay at its most probable place (the
paper's recipe), or with its place integrated out (ours).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from paceline.errors import InputError
from paceline.model import TaskPosterior, TraceModel, measure_of, principal_axes
from paceline.shapes import shape_of
from paceline.strategy.base import Decision, Fork, Goal, History, Interval, Strategy
from paceline.strategy.details import rounded
from paceline.strategy.multitask import Family, Space
from paceline.strategy.multitask.space import as_floats
from paceline.strategy.newtask.ceiling import Ceiling, beyond, ceiling_of
from paceline.strategy.newtask.mixture import Mixture
from paceline.strategy.rollback import with_rollback
from paceline.traces import Objective, Schedule, Trace

APART = 0.05  # of the bounds, that forks keep from each other
HOW, PLACE = ("universal", "probe", "dynamic"), ("posterior", "point")


@dataclass(frozen=True, slots=True)
class Thought:
    """How hard to think at a decision.

    Args:
        places: tried for the new task.
        models: of these that a plan averages over.
        draws: of a schedule under each of them.
        grid, sweeps: rates tried for an interval at once, and how often for each.
        climbs: gradient steps of all rates together afterwards.
    """

    places: int = 48
    models: int = 8
    draws: int = 24
    grid: int = 7
    sweeps: int = 2
    climbs: int = 15


@dataclass(frozen=True, slots=True, eq=False)
class NewTask(Strategy):
    """Tune a run of a task that a family's model has not seen.

    Args:
        family: its settings; the schedules searched are its own.
        known: its runs.
        model: fitted to them.
        task: name of the new one.
        how: "universal", "probe" or "dynamic".
        place: "posterior" integrates the task's place out, "point" takes the most probable one.
        measure: where it may lie beforehand: "gaussian", or "hull" as in the paper.
        probe: intervals at the beginning that are spent on learning where it lies.
        forks: runs side by side, after the probe.
        alphas: quantile of the final value that is maximised, at the first decision and at the last. It pays to be
            optimistic early, when what goes wrong can be mended and what is tried teaches, and careful in the end; a
            plan that is made once is careful.
        thought: how hard to think.
    """

    family: Family
    known: tuple[Trace, ...]
    model: TraceModel
    task: str = "new"
    how: str = "dynamic"
    place: str = "posterior"
    measure: str = "gaussian"
    probe: int = 0
    forks: int = 1
    alphas: tuple[float, float] = (0.7, 0.3)
    thought: Thought = field(default_factory=Thought)

    @classmethod
    def of(cls, family: Family, known: Sequence[Trace], **settings: Any) -> "NewTask":
        """Fit the family's model, and begin from it."""
        return cls(family, tuple(known), family.fit(known), **settings)

    @property
    def space(self) -> Space:
        """The schedules searched."""
        return self.family.space

    def __post_init__(self) -> None:
        if self.task in self.model.encoder.tasks:
            raise InputError(
                f"{self.task!r} is a task of the family, expected a new name: pass another, or run its own schedule"
            )
        for name, known in (("how", HOW), ("place", PLACE)):
            if getattr(self, name) not in known:
                raise InputError(f"{name} must be one of {list(known)}, got {getattr(self, name)!r}")
        if not 0 <= self.probe < self.space.intervals:
            raise InputError(
                f"a probe takes 0 to {self.space.intervals - 1} of the {self.space.intervals} intervals, "
                f"got {self.probe}: leave some to use what it shows"
            )
        if self.how == "probe" and self.probe == 0:
            raise InputError("a probe takes at least one interval, got 0: pass probe=, in steps")
        if self.forks < 1 or (self.forks > 1 and self.how != "dynamic"):
            raise InputError(f"forks must be 1, or more where they are dynamic, got {self.forks}")
        if len(self.alphas) != 2 or not all(0 < alpha < 1 for alpha in self.alphas):
            raise InputError(f"alphas must be two quantile orders in (0, 1), first and last, got {self.alphas}")
        measure_of(self.measure, self.model)

    def objective(self, objective: Objective) -> Objective:
        """The family's: its model reads nothing else."""
        return self.model.encoder.segmenter.objective

    def total_steps(self, goal: Goal) -> int:
        """All forks to the end; a single run may repeat an interval that failed, if only one."""
        longest = int(np.diff(self.space.change_points).max())
        if goal.steps != self.space.steps:
            raise InputError(
                f"the family's runs take {self.space.steps:,} steps, got steps={goal.steps}: leave steps= out, or make "
                "a family of that length"
            )
        return goal.steps * self.forks + (longest if self.forks == 1 else 0)

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        plain = ("task", "how", "place", "measure", "probe", "forks", "alphas")
        return {
            "strategy": "new task",
            "family": {
                "tasks": [*self.family.tasks, *self.family.others],
                "intervals": self.space.intervals,
                "base": shape_of(self.space.base).to_json(),
                "dims": self.family.dims,
                "link": self.model.link.name,
                "order": self.family.order,
                "progress": self.family.progress,
                "objective": asdict(self.model.encoder.segmenter.objective),
            },
            **{name: getattr(self, name) for name in plain},
            "thought": asdict(self.thought),
        }

    def propose(self, history: History) -> Decision:
        """The next decision; where every fork has failed, a way back."""
        return with_rollback(history, self.total_steps(history.goal), self._decide)

    def _decide(self, history: History) -> Decision:
        """The rates of the next interval, or the end."""
        k, points = history.round, self.space.change_points
        if k == self.space.intervals:
            best = max(history.alive, key=lambda fork: (history.goal.objective.sign * fork.final_value, -fork.id))
            reason = f"fork {best.id} ended best, at {best.final_value:.6g} over its last observations"
            known = self._known(history, self.space.intervals)
            return Decision(winner=best.id, reasons=(reason, self._lies(known)), details=self._details(known))
        if k < self.probe:
            return self._probing(history, k)
        since = {"universal": 0, "probe": self.probe, "dynamic": k}[self.how]
        known = self._known(history, since)
        plans = [self._plan(history, known, fork, since) for fork in history.alive or [None]]
        best = max(plans, key=lambda plan: plan.score)
        proposals, reasons, tried = list[Interval](), [self._lies(known)], list[float]()
        for i in range(self.forks):
            alpha = self.alpha_at(since, i)
            plan = best if i == 0 else self._plan(history, known, best.fork, since, i)
            # other forks may try what the first is kept from: the best of all is what comes back
            x, held = (self._ceiling(known, best.fork, k) if i == 0 else Ceiling()).held(plan.x[k - since])
            x = apart(x, tried)
            tried.append(x)
            proposals.append(self._proposal(history, k, best.fork, x, new=i > 0, number=i))
            rate, below = proposals[-1].schedule.multipliers[-1], "held below " if held else ""
            reasons.append(
                f"fork {proposals[-1].fork} runs to step {points[k + 1]:,} at {rate:.3g}, {below}the first of "
                f"{', '.join(f'{r:.3g}' for r in self.space.lr_range.from_unit(np.array(plan.x[k - since :])))}: "
                f"the best {alpha:.2g}-quantile of the final value, {plan.value:.6g}"
            )
            reasons += [held] if held else []
        going = {p.fork for p in proposals}
        drops = [
            (f.id, f"fork {best.fork.id} is expected to end better")
            for f in history.alive
            if best.fork and f.id not in going
        ]
        return Decision(tuple(proposals), tuple(drops), reasons=tuple(reasons), details=self._details(known))

    def _probing(self, history: History, k: int) -> Decision:
        """The next rate of the most informative beginning; found once, and the same each time it is asked for."""
        known = self._known(history, 0)
        t = self.thought
        models = known.sample(2 * t.models, _generator(history, 0))
        mixture = Mixture(models, known.task, self.space)
        x, share = mixture.best_probe(
            self.probe, draws=t.draws, grid=t.grid, sweeps=t.sweeps, generator=_generator(history, 1)
        )
        fork = history.alive[0] if history.alive else None
        proposals = [self._proposal(history, k, fork, float(x[k]), new=False, number=0)]  # others would only repeat it
        rates = ", ".join(f"{rate:.3g}" for rate in self.space.lr_range.from_unit(x.numpy()))
        reason = f"a probe at {rates}: {share:.0%} of what is uncertain about it is where the task lies"
        return Decision(tuple(proposals), reasons=(reason,), details=self._details(known))

    def _known(self, history: History, intervals: int) -> TaskPosterior:
        """What the first so many intervals of all forks say about where the task lies."""
        task, measure = self.task, measure_of(self.measure, self.model)
        end = int(self.space.change_points[intervals])
        runs = [
            replace(cut, name=f"{task} {trace.name}", task=task)  # known by its name; the family has such names too
            for trace in history.traces()
            if intervals and (cut := until(trace, end)) is not None
        ]
        if not runs:
            return TaskPosterior.from_prior(self.model, task, measure, self.thought.places, _generator(history, 2))
        return TaskPosterior.from_runs(
            self.model, task, runs, measure, self.thought.places, _generator(history, 3 + intervals)
        )

    def _plan(self, history: History, known: TaskPosterior, fork: Fork | None, since: int, number: int = 0) -> "Plan":
        """The best rates from change point `since` on, for the first fork or another."""
        t, generator = self.thought, _generator(history, 20 + since)
        models = (
            known.sample(t.models, _generator(history, 40 + since)) if self.place == "posterior" else (known.point(),)
        )
        trace = fork.trace if fork is not None and since else None
        while trace is not None and trace.steps[0] > self.space.change_points[since]:
            trace = trace.parent  # a clone that was made later, to go back
        if trace is not None:
            trace = until(trace, int(self.space.change_points[since]))
        start = None if trace is None else replace(trace, task=self.task)
        x, score = Mixture(models, known.task, self.space, start, since).best_rest(
            self.alpha_at(since, number),
            draws=t.draws * t.models // len(models),
            grid=t.grid,
            sweeps=t.sweeps,
            climbs=t.climbs,
            generator=generator,
        )
        value = float(self.model.encoder.to_user(torch.tensor([score], dtype=torch.float64))[0])
        return Plan(fork, as_floats(x), score, value)

    def _ceiling(self, known: TaskPosterior, fork: Fork | None, k: int) -> Ceiling:
        """How high interval k may go: a plan that is made once is run as it is."""
        if fork is None or self.how != "dynamic":
            return Ceiling()
        outside = fork.trace is not None and beyond(self.model, known.point(), known.task, fork.trace)
        return ceiling_of(self.space, fork.schedule, outside=outside, last=k == self.space.intervals - 1)

    def _proposal(self, history: History, k: int, fork: Fork | None, x: float, *, new: bool, number: int) -> Interval:
        """Interval k of a fork, or of a clone of it."""
        points, rate = self.space.change_points, float(self.space.lr_range.from_unit(np.array([x]))[0])
        before = list(fork.schedule.multipliers) if fork is not None else []
        schedule = Schedule([*before, rate], points[: k + 2], self.space.steps, self.space.base)
        first, last = int(points[k]), int(points[k + 1])
        if fork is None:
            return Interval(number, None, first, last, schedule, history.round + 1)
        fresh = max(f.id for f in history.forks) + number
        return Interval(fresh if new else fork.id, fork.id if new else None, first, last, schedule, history.round + 1)

    def alpha_at(self, done: int, fork: int = 0) -> float:
        """The quantile after so many intervals; forks after the first are spread evenly from 0.05 to 0.95."""
        first, last = self.alphas if self.how == "dynamic" else self.alphas[1:] * 2
        alpha = first + (last - first) * done / max(self.space.intervals - 1, 1)
        return alpha if fork == 0 else 0.05 + (alpha - 0.05 + 0.9 * fork / self.forks) % 0.9

    def _lies(self, known: TaskPosterior) -> str:
        """Where the task lies, in words."""
        tasks, embedding = self.model.encoder.tasks, self.model.posterior.hyper.embedding
        gaps = (embedding - known.mean).square().sum(1).sqrt()
        nearest = int(gaps.argmin())
        return f"{known.task} lies {float(gaps[nearest]):.2g} from {tasks[nearest]}, give or take {known.spread:.2g}"

    def _details(self, known: TaskPosterior) -> dict[str, Any]:
        """The embedding, and the new task in it, on the principal axes of the known tasks."""
        embedding = self.model.posterior.hyper.embedding.numpy()
        axes = principal_axes(embedding)
        order = known.weights.argsort(descending=True)[:POINTS]
        return rounded(
            {
                "embedding": [
                    {"task": task, "at": at}
                    for task, at in zip(self.model.encoder.tasks, embedding @ axes, strict=True)
                ],
                "place": {
                    "mean": known.mean.numpy() @ axes,
                    "covariance": axes.T @ known.covariance.numpy() @ axes,
                    "spread": known.spread,
                    "points": known.locations[order].numpy() @ axes,
                    "weights": known.weights[order].numpy(),
                },
            }
        )


POINTS = 40  # places that the journal keeps of a decision


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The rates from now on, and what they are expected to lead to, scaled and in the user's units."""

    fork: Fork | None
    x: tuple[float, ...]
    score: float
    value: float


def _generator(history: History, stream: int) -> torch.Generator:
    """Randomness for one purpose at one decision: the same whenever it is asked for."""
    return torch.Generator().manual_seed(1_000_003 * stream + history.goal.seed)


def whole_intervals(space: Space, steps: int) -> int:
    """How many intervals a probe of so many steps takes, rounded up."""
    return int(np.searchsorted(space.change_points, steps))


def apart(x: float, tried: Sequence[float]) -> float:
    """x, or the nearest place at least APART from those tried: forks that begin alike would be one run twice.

    >>> apart(0.5, [0.2]), apart(0.5, [0.5]), round(apart(1.0, [1.0]), 2)
    (0.5, 0.55, 0.95)
    """
    places = [x, *(at + side * APART for at in tried for side in (1, -1))]
    free = [p for p in places if 0 <= p <= 1 and all(abs(p - at) >= APART - 1e-9 for at in tried)]
    return min(free, key=lambda p: round(abs(p - x), 9)) if free else x


def until(trace: Trace, step: int) -> Trace | None:
    """What was observed up to a step, None where that is nothing."""
    count = int((trace.steps <= step).sum())
    return trace.head(count) if count else None
