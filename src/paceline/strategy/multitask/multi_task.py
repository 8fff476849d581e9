"""Algorithm 2 as a journaled strategy: an initial design, then runs that teach most, then an answer for each task.

Every run is one interval, from step 0 of its task to the end. A decision is a function of the history alone: the model
is fitted from nothing each time, in a second or two, so a study that was interrupted decides the same again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from paceline.errors import InputError
from paceline.settings import FamilySettings
from paceline.strategy.base import Decision, Goal, History, Strategy
from paceline.strategy.multitask.decisions import (
    all_failed_decision,
    final_decision,
    infill_decision,
    initial_decision,
    lower_decision,
)
from paceline.strategy.multitask.family import Family
from paceline.strategy.multitask.preprocess_runs import preprocess_runs, schedule_on_base
from paceline.strategy.multitask.run_costs import RunCosts
from paceline.strategy.multitask.space import Run, initial_runs
from paceline.strategy.multitask.task_summary import best_runs, failing_tasks
from paceline.traces import Objective, Trace

LOWER_HALF = 0.5  # factor of x when no run has shown a value yet


@dataclass(frozen=True, slots=True)
class MultiTask(Strategy):
    """Schedules for a family of tasks.

    Args:
        settings: how they are tuned.
        known_runs: runs made before, with their tasks; they cost nothing.
        sources: where these come from, for the record: task or study, and its path.
    """

    restarts: ClassVar[bool] = True
    families: ClassVar[bool] = True

    settings: FamilySettings = field(default_factory=FamilySettings)
    known_runs: tuple[Trace, ...] = ()
    sources: dict[str, str] = field(default_factory=dict[str, str])

    def objective(self, objective: Objective) -> Objective:
        """The user's objective, of the weights and on the scale that are modelled.

        The logarithm is for losses. A value that is to be large would be coarse on it where it is good, and far away
        where it is bad.
        """
        transform = self.settings.transform if objective.mode == "min" else "identity"
        return Objective(objective.mode, transform, self.settings.judged_weights)

    @property
    def costs(self) -> RunCosts:
        """What runs cost."""
        return RunCosts(self.settings)

    def family(self, goal: Goal) -> Family:
        """Algorithm 2 with these settings."""
        if not goal.tasks:
            raise InputError("expected tasks, got none: pass tasks=[...] to Tuner, or use tune_tasks")
        known_tasks = tuple(sorted({trace.task for trace in self.known_runs} - set(goal.tasks)))
        return Family(goal, self.settings, known_tasks)

    def initial_runs(self, goal: Goal) -> tuple[Run, ...]:
        """The runs to begin with: none of tasks that known runs have shown, unless `initial` asks for so many.

        With costs they are of the cheaper tasks (`RunCosts.first_runs`).
        """
        known_tasks = {trace.task for trace in self.known_runs}
        new = [task for task in goal.tasks if task not in known_tasks]
        initial, space = self.settings.initial, self.family(goal).space
        if initial is None:
            first = self.costs.first_runs(new) if new else {}
            if len(set(first.values())) > 1:  # each task has a design of its own
                parts = [initial_runs(space, [task], count, goal.seed) for task, count in first.items()]
                return tuple(run for part in parts for run in part)
            tasks, count = list(first), sum(first.values())
        else:
            tasks, count = goal.tasks, initial
        if count == 0 and self.known_runs:
            return ()
        if count < 1:
            raise InputError(
                f"initial must be at least 1, got {count}: a model needs runs to begin with, or known ones"
            )
        return initial_runs(space, tasks, count, goal.seed)

    def total_steps(self, goal: Goal) -> int:
        """All runs from start to end."""
        space, initial = self.family(goal).space, self.initial_runs(goal)
        left = self.costs.left_after([run.task for run in initial])
        for trace in self.known_runs:
            schedule_on_base(trace, space)  # refuses what cannot be compared before anything is run
        if left < 0:
            raise InputError(
                f"budget counts all runs, the {len(initial)} first ones included, got {self.settings.budget}: raise it"
            )
        return (len(initial) + self.costs.most_runs(goal.tasks, left)) * goal.steps

    def planned_intervals(self, goal: Goal) -> list[tuple[int, int, int]]:
        """The initial design, and as many runs of mean cost as the rest of the budget pays for."""
        initial, costs = self.initial_runs(goal), [self.costs.of(task) for task in goal.tasks]
        left = self.costs.left_after([run.task for run in initial])
        return [(len(initial) + round(left * len(costs) / sum(costs)), 0, goal.steps)]

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data; known runs by where they come from."""
        return {
            "strategy": "multitask",
            **self.settings.to_json(),
            **({"known": self.sources} if self.known_runs else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], known: Sequence[Trace] = ()) -> "MultiTask":
        """The strategy that `to_json` wrote, with its known runs."""
        settings = {name: value for name, value in data.items() if name not in ("strategy", "known")}
        return cls(FamilySettings.from_json(settings), tuple(known), data.get("known", {}))

    def propose(self, history: History) -> Decision:
        """The initial design, then what teaches most, then the answers."""
        goal, so_far, settings = history.goal, len(history.forks), self.settings
        self._check_observations(history)
        initial, family = self.initial_runs(goal), self.family(goal)
        if so_far < len(initial):
            known = self.all_runs(history.traces(), goal.objective)
            runs = family.within_safe_rates(initial[so_far : so_far + settings.batch], known)
            return initial_decision(family, history, runs, len(initial))
        failing = failing_tasks(history, settings.max_failures)
        tasks = [task for task in goal.tasks if task not in failing]
        left = self.costs.left_after([goal.tasks[fork.task] for fork in history.forks])
        traces, affordable = self.all_runs(history.traces(), goal.objective), self.costs.affordable(tasks, left)
        over = not affordable
        no_success = not best_runs(history) and all(trace.failed for trace in self.known_runs)
        if (over and no_success) or not preprocess_runs(traces, family.space):
            return all_failed_decision(history) if over else self._at_lower_rates(family, history, left, affordable)
        model = family.fit(traces)
        if over:
            return final_decision(family, history, model, traces)
        choices = family.propose(model, traces, count=settings.batch, tasks=tasks, left=left)
        return infill_decision(family, history, model, choices, failing)

    def all_runs(self, traces: Sequence[Trace], objective: Objective) -> list[Trace]:
        """Known runs and these, on one scale: plain values if one is not positive."""
        runs = [*self.known_runs, *traces]
        values = [trace.values[np.isfinite(trace.values)] for trace in runs]
        if objective.transform == "log" and any(bool((column <= 0).any()) for column in values):
            objective = replace(objective, transform="identity")
        return [replace(trace, objective=objective) for trace in runs]

    def _at_lower_rates(self, family: Family, history: History, left: float, tasks: Sequence[str]) -> Decision:
        so_far, count = len(history.forks), min(self.settings.batch, self.costs.fewest_runs(tasks, left))
        design = initial_runs(family.space, tasks, so_far + count, history.goal.seed)[so_far:]
        lower = [Run(run.task, tuple(LOWER_HALF * x for x in run.x)) for run in design]
        return lower_decision(family, history, lower)

    def _check_observations(self, history: History) -> None:
        """Refuse runs without a value in their first interval before more of them are made."""
        end = int(self.family(history.goal).space.change_points[1])
        late = [fork for fork in history.alive if fork.trace is not None and fork.trace.steps[0] >= end]
        if late and late[0].trace is not None:
            raise InputError(
                f"run {late[0].id}: expected a value before step {end:,}, where the first interval ends, got the first "
                f"at step {late[0].trace.steps[0]:,}: observe more often (every=), in a new study"
            )
