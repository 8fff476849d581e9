"""A toy study, driven by hand: what the tests of the loop, of faults and of views share."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from paceline.shapes import Cosine, Linear
from paceline.strategy import (
    Dynamic,
    FixedSchedules,
    ModelQuantile,
    Strategy,
)
from paceline.study import Dropped, Finished, Interval, Report, read_journal
from paceline.tuner import Tuner

STRATEGIES: dict[str, Strategy] = {
    "horizon": Dynamic.horizon(),
    "horizon-1.5": Dynamic.horizon(cost=1.5),
    "horizon-3.2": Dynamic.horizon(cost=3.2),
    "horizon-5": Dynamic.horizon(cost=5),
    "model": replace(Dynamic.horizon(), chooser=ModelQuantile(clock="log")),
    "model-5": replace(Dynamic.horizon(cost=5, judge_by="now"), chooser=ModelQuantile(clock="log")),
    "greedy": Dynamic.greedy(intervals=6),
    "greedy-1": Dynamic.greedy(forks=1, intervals=4),
    "paper": Dynamic.paper(forks=3, intervals=4),
    "keep-each": Dynamic.greedy(forks=3, intervals=4, keep_each=True),
    "grid": FixedSchedules((Linear(), Cosine()), runs=4),
    "random": FixedSchedules((Linear(), Cosine()), runs=3, search="random"),
}


def loss(interval: Interval, every: int = 5) -> tuple[list[int], dict[str, list[float]]]:
    """A toy run: falls fastest at a rate of 0.01, and depends on the schedule alone."""
    steps = list(range(interval.start + every, interval.stop + 1, every))
    fit = np.cumsum(1.0 / (1.0 + np.log10(interval.schedule(np.arange(interval.stop)) / 0.01) ** 2))
    raw = [3.0 * float(np.exp(-fit[t - 1] / 150)) + 0.1 for t in steps]
    return steps, {"raw": raw, "averaged": [0.99 * v for v in raw]}


def drive(tuner: Tuner, most: int = 10**6) -> Tuner:
    """Report on intervals until the study is over, or `most` reports were made."""
    while (intervals := tuner.ask()) is not None and most > 0:
        for interval in intervals[:most]:
            tuner.tell(interval, *loss(interval))
            most -= 1
    return tuner


def make(strategy: str | Strategy, **settings) -> Tuner:
    chosen = STRATEGIES[strategy] if isinstance(strategy, str) else strategy
    return Tuner(lr=(1e-4, 1e-1), steps=400, strategy=chosen, **settings)


class Interrupt(BaseException):
    """Stands for Ctrl-C."""


def facts(path: Path) -> list[str]:
    """What a study decided and observed, in any order, without how long it took."""
    kinds = Interval | Report | Dropped | Finished
    return sorted(repr(event) for event in read_journal(path / "journal.jsonl") if isinstance(event, kinds))
