"""A study on paper: a made-up loss in place of a training, and forks that fail when a check wants them to."""

from typing import Literal

import numpy as np

from paceline.strategy import Strategy
from paceline.study import Failure, Interval
from paceline.tuner import Tuner

Failing = Literal["nothing", "high rates", "everything"]
OBSERVATIONS_PER_RUN = 80  # of a whole run


def run_simulation(
    strategy: Strategy,
    *,
    lr: "tuple[float, float]",
    steps: int,
    seed: int,
    tasks: tuple[str, ...],
    failing: Failing,
    most_rounds: int,
) -> Tuner:
    """Drive a study until it is over, or for so many rounds."""
    tuner = Tuner(lr=lr, steps=steps, strategy=strategy, seed=seed, tasks=tasks)
    rounds = 0
    while (intervals := tuner.ask()) is not None and rounds < most_rounds:
        rounds += 1
        for interval in intervals:
            observed = _observed_steps(interval, steps)
            if _fails(interval, lr, failing):
                tuner.fail(interval, Failure("not finite", step=observed[0]))
            else:
                tuner.tell(interval, observed, _losses(interval, observed, lr))
    return tuner


def _observed_steps(interval: Interval, steps: int) -> list[int]:
    every = max(1, steps // OBSERVATIONS_PER_RUN)
    return sorted({*range(interval.start + every, interval.stop, every), interval.stop})


def _fails(interval: Interval, lr: "tuple[float, float]", failing: Failing) -> bool:
    if failing == "high rates":
        low, high = lr
        return interval.schedule(interval.start) > high * (low / high) ** 0.25
    return failing == "everything"


def _losses(interval: Interval, at: list[int], lr: "tuple[float, float]") -> dict[str, list[float]]:
    """The loss falls fastest at the middle of the bounds, and a little faster in each later task."""
    middle = np.sqrt(lr[0] * lr[1])
    distance = np.log10(interval.schedule(np.arange(interval.stop)) / middle)
    speed = np.cumsum((1 + 0.1 * interval.task) / (1 + distance**2))
    raw = [0.1 + 3 * float(np.exp(-5 * speed[step - 1] / interval.schedule.steps)) for step in at]
    return {"raw": raw, "averaged": [0.99 * value for value in raw]}
