"""Tuners in this process: `horizon`, and Optuna's TPE with its Hyperband pruner over peak, base shape and decay.

Each of the first two functions is the whole of the user's code for a method, and its lines are counted.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import optuna

from benchmarks._problems import Problem
from benchmarks.horizon import count_steps
from paceline import tune
from paceline.errors import TrainingError
from paceline.shapes import WarmupStableDecay, shape_of
from paceline.traces import Schedule
from paceline.tuner import Result

SHAPES = ("constant", "linear", "cosine", "exponential", "one_cycle", "warmup_stable_decay")
RUNGS = 27  # a trial may be pruned from T / 27 on: four brackets
STARTUP = 3  # trials of a bracket at random before TPE begins; both favoured on seeds that are not reported


def horizon(problem: Problem, seed: int, cost: float, on_event: Callable[[Any], None]) -> Result:
    """Paceline's default at a cost."""
    return tune(
        lambda: problem.make(seed),
        steps=problem.steps,
        lr=problem.bounds(seed),
        cost=cost,
        seed=seed,
        on_event=on_event,
        quiet=True,
    )


def with_optuna(problem: Problem, seed: int, cost: float, rungs: int = RUNGS, startup: int = STARTUP) -> optuna.Study:
    """Optuna over whole schedules, all trials together within the budget; a trial that runs out of it is pruned."""
    left = round(cost * problem.steps)

    def objective(trial: optuna.Trial) -> float:
        nonlocal left
        shape = trial.suggest_categorical("shape", SHAPES)
        peak = trial.suggest_float("peak", *problem.bounds(seed), log=True)
        if shape == "warmup_stable_decay":
            base = WarmupStableDecay(decay=trial.suggest_float("decay", 0.1, 0.98))
        else:
            base = shape_of(shape)
        before, loss = 0, np.inf
        for step, value in problem.make(seed).advance(Schedule.of(base, peak, problem.steps), problem.steps):
            left, before, loss = left - (step - before), step, value["raw"]
            trial.report(loss, step)
            if left <= 0:
                trial.study.stop()
            if step < problem.steps and (left <= 0 or not np.isfinite(loss) or trial.should_prune()):
                raise optuna.TrialPruned
        return loss

    study = optuna.create_study(
        study_name=f"{problem.name} {seed}",  # Hyperband draws the bracket of a trial from it
        sampler=optuna.samplers.TPESampler(n_startup_trials=startup, seed=seed),
        pruner=optuna.pruners.HyperbandPruner(problem.steps // rungs, problem.steps, reduction_factor=3),
    )
    study.optimize(objective)
    return study


def run_horizon(problem: Problem, seed: int, cost: float) -> dict[str, Any]:
    """The final raw loss of the fork that won, and the steps that all forks took."""
    steps = list[int]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = horizon(problem, seed, cost, partial(count_steps, steps))
            raw = next(fork.last_values["raw"] for fork in result.history.forks if fork.id == result.fork)
        except TrainingError:
            raw = None
    return {"raw": raw, "cost": sum(steps) / problem.steps}


def run_optuna(problem: Problem, seed: int, cost: float, **options: int) -> dict[str, Any]:
    """The final loss of the best trial that ended, and the steps that all trials took."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        study = with_optuna(problem, seed, cost, **options)
    ended = [t.value for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE and np.isfinite(t.value)]
    spent = sum(t.last_step or 0 for t in study.trials) / problem.steps
    best = study.best_trial.params if ended else {}
    return {"raw": min(ended, default=None), "cost": spent, "trials": len(study.trials), "ended": len(ended), **best}
