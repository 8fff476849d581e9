"""Does tuning on the fly win at the horizon? Final loss over that of the best fixed schedule tuned in hindsight.

Every method runs through the same loop with the same weights, data and bounds within a seed, and is charged for every
step of every fork. Bars (geometric mean over the problems): cost 5 at most 1.00; cost 2.3 at most 1.045 and 1.02 on the
networks; 1.5 at most 1.03 on the networks; and 2.3 better than a grid of five runs, PBT, PB2 and AutoLRS at cost 5.

`python -m benchmarks.horizon` resumes from results/horizon.jsonl; under two hours on two cores in all.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._hindsight import SHAPES, hindsight, train
from benchmarks._problems import PROBLEMS
from benchmarks._runs import Key
from paceline import tune
from paceline.errors import TrainingError
from paceline.strategy import Dynamic, FixedSchedules, PopulationBasedTraining, Strategy
from paceline.study import Failed, Observed

FAMILIES = {name: shape for name, shape in SHAPES.items() if name != "exponential 0.1"}
METHODS: dict[str, Callable[[], Strategy]] = {
    "horizon 5": lambda: Dynamic.horizon(cost=5),
    "horizon 5 blind": lambda: Dynamic.horizon(cost=5, choose="blind"),
    "greedy 5": Dynamic.greedy,
    "PBT 5": PopulationBasedTraining,
    **{f"grid of 5, {name}": lambda s=shape: FixedSchedules((s,), 5) for name, shape in FAMILIES.items()},
    "random 5": lambda: FixedSchedules(tuple(FAMILIES.values()), 5, "random"),
    "horizon 3.2": lambda: Dynamic.horizon(cost=3.2),
    "horizon 2.3": lambda: Dynamic.horizon(cost=2.3),
    "horizon 2.3 blind": lambda: Dynamic.horizon(cost=2.3, choose="blind"),
    "horizon 1.5": lambda: Dynamic.horizon(cost=1.5),
}


def run(key: Key) -> dict[str, Any]:
    """One study, or the hindsight schedule alone."""
    name, method, seed = key
    if method == "hindsight":
        return {**train(name, *hindsight(name), seed), "cost": 1.0}
    return study(name, METHODS[method](), seed)


def study(name: str, strategy: Strategy, seed: int) -> dict[str, Any]:
    """Tune a problem; final values of the fork that won, and the steps that all forks took."""
    problem, taken = PROBLEMS[name], list[int]()

    def count(event: object) -> None:
        if isinstance(event, Observed | Failed):
            taken.append((event.stop if isinstance(event, Observed) else event.step) - event.start)

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = tune(
                lambda: problem.make(seed),
                steps=problem.steps,
                lr=problem.bounds(seed),
                strategy=strategy,
                seed=seed,
                on_event=count,
            )
        last = next(fork.last for fork in found.history.forks if fork.id == found.fork)
    except TrainingError as error:
        last = {"raw": None, "averaged": None, "failure": str(error)}
    return {**last, "cost": sum(taken) / problem.steps}
