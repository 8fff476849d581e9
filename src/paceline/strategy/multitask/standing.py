"""How the runs of a family stand: the best of each task, those behind it, and tasks that are given up."""

from typing import Any

from paceline.strategy.base import Fork, History
from paceline.strategy.details import rounded
from paceline.traces import Objective

HOPELESS = 3
"""A task is given up after so many runs, if none of them reached the end."""


def ended_at(fork: Fork, objective: Objective) -> float:
    """Where a run ended: the mean of the last five values of the weights that are judged."""
    return fork.final_means.get(objective.weights, fork.recent())


def best_runs(history: History) -> dict[int, Fork]:
    """The best run of each task that has one that reached the end."""
    objective, best = history.goal.objective, dict[int, Fork]()
    for fork in history.alive:
        if fork.trace is None:
            continue
        other = best.get(fork.task)
        if other is None or objective.sign * (ended_at(fork, objective) - ended_at(other, objective)) > 0:
            best[fork.task] = fork
    return best


def behind(history: History) -> tuple[tuple[int, str], ...]:
    """All but the best run of each task: their states are not needed any more."""
    best, objective = best_runs(history), history.goal.objective
    return tuple(
        (
            fork.id,
            f"its task's run {best[fork.task].id} ended better, at {ended_at(best[fork.task], objective):.4g} "
            f"against {ended_at(fork, objective):.4g}",
        )
        for fork in history.alive
        if fork.task in best and best[fork.task].id != fork.id
    )


def hopeless(history: History) -> list[str]:
    """Tasks whose runs all failed, several of them."""
    done = {task: [f for f in history.forks if f.task == m] for m, task in enumerate(history.goal.tasks)}
    return [task for task, forks in done.items() if len(forks) >= HOPELESS and all(f.failure for f in forks)]


def standing(history: History) -> dict[str, Any]:
    """The best run of each task so far."""
    objective, best = history.goal.objective, best_runs(history)
    rows = [
        {"task": history.goal.tasks[m], "fork": fork.id, "value": ended_at(fork, objective)}
        for m, fork in sorted(best.items())
    ]
    return {"best": rounded(rows)}
