"""How the tasks of a family are doing: the best run of each, runs that are worse, and tasks that are given up."""

from typing import Any

from paceline.strategy.base import Fork, History
from paceline.strategy.details import round_floats
from paceline.study import Reason, because
from paceline.traces import Objective


def final_value(fork: Fork, objective: Objective) -> float:
    """The end of a run: the mean of the last five values of the weights that are judged."""
    return fork.final_means.get(objective.weights, fork.recent())


def best_runs(history: History) -> dict[int, Fork]:
    """The best run of each task that has one that reached the end, by the number of the task."""
    objective, best = history.goal.objective, dict[int, Fork]()
    for fork in history.alive:
        if fork.trace is None:
            continue
        other = best.get(fork.task)
        if other is None or objective.sign * (final_value(fork, objective) - final_value(other, objective)) > 0:
            best[fork.task] = fork
    return best


def worse_runs(history: History) -> tuple[tuple[int, Reason], ...]:
    """All but the best run of each task, with the reason: their states are no longer needed."""
    best, objective = best_runs(history), history.goal.objective
    return tuple(
        (
            fork.id,
            because(
                "worse run",
                best=best[fork.task].id,
                best_value=final_value(best[fork.task], objective),
                value=final_value(fork, objective),
            ),
        )
        for fork in history.alive
        if fork.task in best and best[fork.task].id != fork.id
    )


def failing_tasks(history: History, max_failures: int) -> list[str]:
    """Tasks with so many runs or more, all of them failed."""
    runs = {task: [f for f in history.forks if f.task == m] for m, task in enumerate(history.goal.tasks)}
    return [task for task, forks in runs.items() if len(forks) >= max_failures and all(f.failure for f in forks)]


def best_run_details(history: History) -> dict[str, Any]:
    """The best run of each task so far, for the journal."""
    objective, best = history.goal.objective, best_runs(history)
    rows = [
        {"task": history.goal.tasks[m], "fork": fork.id, "value": final_value(fork, objective)}
        for m, fork in sorted(best.items())
    ]
    return {"best": round_floats(rows)}
