"""The decisions of Algorithm 2: what is run next, why, and what views are shown of it."""

from collections.abc import Sequence

from paceline.model import TraceModel
from paceline.strategy.base import Decision, History
from paceline.strategy.multitask.family import Family
from paceline.strategy.multitask.family_details import (
    answer_details,
    embedding_details,
    final_forecasts,
    infill_details,
    rate_numbers,
)
from paceline.strategy.multitask.infill import InfillChoice
from paceline.strategy.multitask.space import Run
from paceline.strategy.multitask.task_summary import best_run_details, worse_runs
from paceline.study import Interval, Reason, because
from paceline.traces import Trace

JOURNALED_RIVALS = 3  # of the runs that were not chosen


def initial_decision(family: Family, history: History, runs: Sequence[Run], total: int) -> Decision:
    """Some of the runs of the initial design, which has `total`."""
    first = len(history.forks)
    rows = [{"fork": first + i, "task": run.task, **rate_numbers(family.space, run.x)} for i, run in enumerate(runs)]
    reason = because("initial design", first=first + 1, total=total, runs=rows)
    return _with_runs(family, history, runs, reason)


def lower_decision(family: Family, history: History, runs: Sequence[Run]) -> Decision:
    """Runs at lower rates, because no run has shown a value yet."""
    return _with_runs(family, history, runs, because("no value yet", runs=len(runs)))


def all_failed_decision(history: History) -> Decision:
    """The end of a study without an answer."""
    reason = because("all runs failed", runs=len(history.forks))
    return Decision((), worse_runs(history), reasons=(reason,), details=best_run_details(history))


def infill_decision(
    family: Family, history: History, model: TraceModel, choices: Sequence[InfillChoice], failing: Sequence[str]
) -> Decision:
    """The runs that teach most."""
    intervals = whole_runs(family, history, [choice.run for choice in choices])
    reasons = [_choice_reason(family, each.fork, choice) for each, choice in zip(intervals, choices, strict=True)]
    reasons += [because("task given up", task=task, runs=family.settings.max_failures) for task in failing]
    details = {
        **best_run_details(history),
        "forecast": final_forecasts(model, history, intervals),
        "infill": infill_details(intervals, choices),
        "embedding": embedding_details(family, model),
    }
    return Decision(intervals, worse_runs(history), reasons=tuple(reasons), details=details)


def final_decision(family: Family, history: History, model: TraceModel, traces: Sequence[Trace]) -> Decision:
    """The end of the study: an answer for each task."""
    answers = family.answers(model, traces)
    details = {
        **best_run_details(history),
        "answers": [answer_details(task, answer, traces) for task, answer in answers.items()],
        "embedding": embedding_details(family, model),
    }
    failed = sum(not fork.alive and fork.failure is not None for fork in history.forks)
    reason = because("answers", runs=len(history.forks), failed=failed)
    return Decision((), worse_runs(history), reasons=(reason,), details=details)


def whole_runs(family: Family, history: History, runs: Sequence[Run]) -> tuple[Interval, ...]:
    """Each run from step 0 of its task to the end."""
    goal, first = history.goal, len(history.forks)
    return tuple(
        Interval(
            first + i, None, 0, goal.steps, family.space.schedule(run.x), history.round + 1, goal.tasks.index(run.task)
        )
        for i, run in enumerate(runs)
    )


def _with_runs(family: Family, history: History, runs: Sequence[Run], reason: Reason) -> Decision:
    """Runs that no model has chosen."""
    return Decision(
        whole_runs(family, history, runs), worse_runs(history), reasons=(reason,), details=best_run_details(history)
    )


def _choice_reason(family: Family, fork: int, choice: InfillChoice) -> Reason:
    """What a run is expected to teach, and what the best run of each other task would."""
    others = {task: variance for task, variance in choice.rivals.items() if task != choice.run.task}
    ranked = sorted(others.items(), key=lambda item: item[1])[:JOURNALED_RIVALS]
    return because(
        "informative run",
        fork=fork,
        task=choice.run.task,
        **rate_numbers(family.space, choice.run.x),
        before=choice.before,
        after=choice.after,
        **({} if family.settings.costs is None else {"cost": choice.run_cost}),
        rivals=[{"task": task, "variance": variance} for task, variance in ranked],
    )
