"""Algorithm 2 as a journaled strategy: first runs by design, then runs that teach most, then an answer for each task.

Every run is one proposal, from step 0 of its task to the end. A decision is a function of the history alone: the model
is fitted from nothing each time, which takes a second or two, so a study that was cut off decides the same again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.model import Link, TraceModel
from paceline.shapes import HOLD_THEN_DECAY, Constant, Shape, shape_from_json, shape_of
from paceline.strategy.base import Decision, Goal, History, Interval, Strategy
from paceline.strategy.details import rounded
from paceline.strategy.multitask.family import Family
from paceline.strategy.multitask.infill import Choice, Effort
from paceline.strategy.multitask.reading import on_base, readable
from paceline.strategy.multitask.space import Run, Space
from paceline.strategy.multitask.standing import HOPELESS, behind, best_runs, hopeless, standing
from paceline.strategy.multitask.words import answer_details, choice_in_words, expected_ends, rates_in_words
from paceline.study.wording import describe_failure
from paceline.traces import Objective, Trace, Transform, Weights


@dataclass(frozen=True, slots=True)
class MultiTask(Strategy):
    """Schedules for a family of tasks.

    Args:
        intervals: d, of each schedule.
        base: "constant", the paper's piecewise-constant rates; or a shape whose multipliers are tuned, "horizon" for
            the one that `tune` uses.
        initial: first runs by Latin hypercube; by default two for each task that no run is known of, one where the
            budget is less than three for each.
        budget: how many runs are made in all, the first ones included; known ones cost nothing.
        batch: runs at once; each is chosen as if those before it had gone as expected.
        alpha: quantile of the optimistic set; higher explores more.
        answer_alpha: quantile of the answers: 0.5 risk-neutral, less to be careful.
        infill: "variance" runs what teaches most, "optimistic" the optimistic set itself (`Family`).
        dims: L, dimensions of the task embedding.
        link, order, progress: of the trace model (`TraceModel.fit`).
        of: the weights whose values are modelled, "raw" or "averaged"; by default averaged where there is a base.
        transform: scale of the model; "log" falls back to "identity" where a value is not positive.
        effort: how hard to search.
        known: runs made before, with their tasks.
        sources: where these come from, for the record: task or study, and its path.
    """

    restarts: ClassVar[bool] = True
    families: ClassVar[bool] = True

    intervals: int = 5
    base: "str | Shape" = "constant"
    initial: int | None = None
    budget: int = 20
    batch: int = 1
    alpha: float = 0.8
    answer_alpha: float = 0.3
    infill: str = "variance"
    dims: int = 2
    link: "str | Link" = "signed"
    order: int = 2
    progress: bool = True
    of: "Weights | None" = None
    transform: Transform = "log"
    effort: Effort = field(default_factory=Effort)
    known: tuple[Trace, ...] = ()
    sources: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for name in ("intervals", "budget", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.of not in (None, "raw", "averaged"):
            raise InputError(f'of must be "raw" or "averaged", got {self.of!r}: pick the weights that are judged')

    # what is searched

    @property
    def shape(self) -> Shape:
        """The base."""
        return HOLD_THEN_DECAY if self.base == "horizon" else shape_of(self.base)

    @property
    def weights(self) -> Weights:
        """The weights whose values are modelled."""
        return self.of or ("raw" if isinstance(self.shape, Constant) else "averaged")

    def objective(self, objective: Objective) -> Objective:
        """The user's objective, at the weights and on the scale that is modelled."""
        return Objective(objective.mode, self.transform, self.weights)

    def family(self, goal: Goal) -> Family:
        """Algorithm 2 with these settings."""
        if not goal.tasks:
            raise InputError("expected tasks, got none: pass tasks=[...] to Tuner, or use tune_tasks")
        others = tuple(sorted({trace.task for trace in self.known} - set(goal.tasks)))
        return Family(
            Space(goal.lr_range, goal.steps, self.intervals, self.shape),
            goal.tasks,
            initial=self.initial,
            alpha=self.alpha,
            answer_alpha=self.answer_alpha,
            infill=self.infill,
            dims=self.dims,
            link=self.link,
            order=self.order,
            progress=self.progress,
            seed=goal.seed,
            effort=self.effort,
            others=others,
        )

    def first(self, goal: Goal) -> tuple[Run, ...]:
        """The runs to begin with."""
        family, seen = self.family(goal), {trace.task for trace in self.known}
        unseen = [task for task in goal.tasks if task not in seen]
        each = 2 if self.budget >= 3 * len(unseen) else 1
        count = each * len(unseen) if self.initial is None else self.initial
        if count == 0 and self.known:
            return ()
        if count < 1:
            raise InputError(
                f"initial must be at least 1, got {count}: a model needs runs to begin with, or known ones"
            )
        tasks = unseen if self.initial is None and unseen else goal.tasks
        return replace(family, tasks=tuple(tasks), others=(), initial=count).first()

    def total_steps(self, goal: Goal) -> int:
        """All runs from start to end."""
        space = self.family(goal).space
        for trace in self.known:
            on_base(trace, space)  # refuses what cannot be compared before anything is run
        if self.budget < len(self.first(goal)):
            raise InputError(
                f"budget counts all runs, the {len(self.first(goal))} first ones included, got {self.budget}: raise it"
            )
        return self.budget * goal.steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data; known runs by where they come from."""
        names = (
            "intervals",
            "initial",
            "budget",
            "batch",
            "alpha",
            "answer_alpha",
            "infill",
            "dims",
            "order",
            "progress",
            "transform",
        )
        return {
            "strategy": "multitask",
            "base": self.shape.to_json(),
            **{name: getattr(self, name) for name in names},
            "link": self.link if isinstance(self.link, str) else type(self.link).__name__.lower(),
            "of": self.weights,
            "effort": asdict(self.effort),
            **({"known": self.sources} if self.known else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], known: Sequence[Trace] = ()) -> "MultiTask":
        """The strategy that `to_json` wrote, with the runs that were known."""
        names = {"strategy", "base", "effort", "known"}
        settings = {name: value for name, value in data.items() if name not in names}
        return cls(
            **settings,
            base=shape_from_json(data["base"]),
            effort=Effort(**data["effort"]),
            known=tuple(known),
            sources=data.get("known", {}),
        )

    # decisions

    def propose(self, history: History) -> Decision:
        """First runs, then what teaches most, then the answers."""
        goal, made = history.goal, len(history.forks)
        self._check_observed(history)
        first, drops = self.first(goal), behind(history)
        count = min(self.batch, self.budget - made)
        if made < len(first):
            runs = first[made : made + self.batch]
            return self._begin(history, runs, drops, len(first))
        lost = hopeless(history)
        among = [task for task in goal.tasks if task not in lost]
        family, traces = self.family(goal), self.joined(history.traces(), goal.objective)
        over = count <= 0 or not among
        none = not best_runs(history) and all(trace.failed for trace in self.known)
        if (over and none) or not readable(traces, family.space):
            return self._without_model(history, 0 if over else count, drops)
        model = family.fit(traces)
        if not over:
            choices = family.propose(model, traces, count=count, among=among)
            return self._infill(history, model, choices, drops, lost)
        return self._end(history, family, model, traces, drops)

    def _check_observed(self, history: History) -> None:
        """Refuse runs that say nothing of their first interval before more of them are made."""
        end = int(self.family(history.goal).space.change_points[1])
        late = [fork for fork in history.alive if fork.trace is not None and fork.trace.steps[0] >= end]
        if late and late[0].trace is not None:
            raise InputError(
                f"run {late[0].id}: expected a value before step {end:,}, where the first interval ends, got the first "
                f"at step {late[0].trace.steps[0]:,}: observe more often (every=), in a study of its own"
            )

    def joined(self, made: Sequence[Trace], objective: Objective) -> list[Trace]:
        """Known runs and those made so far, on one scale: plain values where one is not positive."""
        found = [*self.known, *made]
        values = [trace.values[np.isfinite(trace.values)] for trace in found]
        if objective.transform == "log" and any(bool((column <= 0).any()) for column in values):
            objective = replace(objective, transform="identity")
        return [replace(trace, objective=objective) for trace in found]

    def _begin(
        self, history: History, runs: Sequence[Run], drops: "tuple[tuple[int, str], ...]", total: int
    ) -> Decision:
        made = len(history.forks)
        words = [f"task {run.task!r} at {rates_in_words(self.family(history.goal).space, run.x)}" for run in runs]
        which = f"{made + 1}" if len(runs) == 1 else f"{made + 1} to {made + len(runs)}"
        reason = f"first runs by Latin hypercube, {which} of {total}: {'; '.join(words)}"
        return Decision(self._proposals(history, runs), drops, reasons=(reason,), details=standing(history))

    def _without_model(self, history: History, count: int, drops: "tuple[tuple[int, str], ...]") -> Decision:
        """No run has shown anything yet: further ones by design, lower, or the end."""
        goal, made = history.goal, len(history.forks)
        if count <= 0:
            said = "; ".join(sorted({describe_failure(fork.failure) for fork in history.forks if fork.failure}))
            reason = f"every run failed: lower the upper bound of the rate, or mend the tasks; what they said: {said}"
            return Decision((), drops, reasons=(reason,), details=standing(history))
        lost = hopeless(history)
        tasks = tuple(task for task in goal.tasks if task not in lost)
        family = replace(self.family(goal), tasks=tasks, others=(), initial=made + count)
        runs = [Run(run.task, tuple(0.5 * x for x in run.x)) for run in family.first()[made:]]
        reason = f"no run has shown a value yet: {count} more by design, in the lower half of the rates"
        return Decision(self._proposals(history, runs), drops, reasons=(reason,), details=standing(history))

    def _infill(
        self,
        history: History,
        model: TraceModel,
        choices: Sequence[Choice],
        drops: "tuple[tuple[int, str], ...]",
        lost: Sequence[str],
    ) -> Decision:
        space = self.family(history.goal).space
        proposals = self._proposals(history, [choice.run for choice in choices])
        reasons = [choice_in_words(p.fork, choice, space) for p, choice in zip(proposals, choices, strict=True)]
        reasons += [f"task {task!r} is given up: {HOPELESS} runs and none reached the end" for task in lost]
        infill = [
            {"fork": p.fork, "before": c.before, "after": c.after, "rivals": c.rivals}
            for p, c in zip(proposals, choices, strict=True)
        ]
        details = {
            **standing(history),
            "forecast": rounded(expected_ends(model, history, proposals)),
            "infill": rounded(infill),
            "embedding": rounded(_places(model)),
        }
        return Decision(proposals, drops, reasons=tuple(reasons), details=details)

    def _end(
        self,
        history: History,
        family: Family,
        model: TraceModel,
        traces: Sequence[Trace],
        drops: "tuple[tuple[int, str], ...]",
    ) -> Decision:
        answers = family.answers(model, traces)
        details = {
            **standing(history),
            "answers": [answer_details(task, answer, traces) for task, answer in answers.items()],
            "embedding": rounded(_places(model)),
        }
        failed = sum(not fork.alive and bool(fork.failure) for fork in history.forks)
        count = len(history.forks)
        words = f"{count} run{' is' if count == 1 else 's are'} made{f', {failed} of them failed' if failed else ''}"
        return Decision((), drops, reasons=(f"{words}: an answer for each task",), details=details)

    def _proposals(self, history: History, runs: Sequence[Run]) -> tuple[Interval, ...]:
        goal, made = history.goal, len(history.forks)
        space = self.family(goal).space
        return tuple(
            Interval(
                made + i, None, 0, goal.steps, space.schedule(run.x), history.round + 1, goal.tasks.index(run.task)
            )
            for i, run in enumerate(runs)
        )


def _places(model: TraceModel) -> list[dict[str, Any]]:
    return [{"task": task, "at": at} for task, at in model.task_embedding.items()]
