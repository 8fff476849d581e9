"""A study as plain named tuples. Figures, tables and the page are drawn from these.

`study_view` makes them. Every number was observed or journaled: a forecast is the one that the decision was made with.
"""

from bisect import bisect_right
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from paceline.study import (
    BestRun,
    BestState,
    Failure,
    Finished,
    Interval,
    Reason,
    TaskAnswer,
    describe,
    describe_failure,
)
from paceline.traces import Objective, Schedule

State = Literal["running", "leading", "dropped", "failed", "turned", "ended", "won"]


class Band(NamedTuple):
    """A journaled forecast of a value at a step: median and 90 % band, and the weights that the value is of."""

    step: int
    low: float
    median: float
    high: float
    weights: str


class ForkView(NamedTuple):
    """One fork: where it began, how far it is, and what it observed itself, by weights.

    It began at step `start` as a clone of `parent`, has reached `step`, and is training up to `stop` if that is not
    None. `task` is empty in a study of one run. `kept` is its best moment whose state was kept; None if it never beat
    its parent, or if the study keeps the ends of runs.
    """

    fork: int
    parent: int | None
    start: int
    step: int
    stop: int | None
    state: State
    failure: Failure | None
    drop: Reason | None
    schedule: Schedule
    forecast: Band | None
    steps: tuple[int, ...]
    values: dict[str, tuple[float, ...]]
    task: str = ""
    kept: BestState | None = None

    @property
    def reason(self) -> str:
        """Why it does not go on, in English. Empty if it does."""
        if self.drop is not None:
            return describe(self.drop)
        return "" if self.failure is None else describe_failure(self.failure)

    @property
    def rate(self) -> float:
        """The learning rate at the step it has reached."""
        return float(self.schedule(self.step))

    @property
    def multiplier(self) -> float:
        """The multiplier of the base that it runs at; the rate itself if the base is constant."""
        return float(self.schedule.multipliers[-1])

    @property
    def last_values(self) -> dict[str, float]:
        """The latest value, by weights."""
        return {weights: column[-1] for weights, column in self.values.items() if column}


class DecisionView(NamedTuple):
    """One decision: when, why, which forks it dropped and which intervals it proposed, and how long it took.

    `done_steps` counts the steps of all forks before it. `details` are numbers of the model that it was made with, as
    docs/journal.md lists them. `spent` are the seconds of the study until then, by what they were spent on.
    """

    round: int
    step: int
    reasons: tuple[Reason, ...]
    dropped: tuple[int, ...]
    seconds: float
    done_steps: int
    intervals: tuple[Interval, ...]
    details: dict[str, Any]
    spent: dict[str, float]


class CostPoint(NamedTuple):
    """The best value at the end of an interval, of either weights, once all forks together had done `done_steps`."""

    done_steps: int
    value: float


class StudyView(NamedTuple):
    """A study so far."""

    settings: dict[str, Any]
    forks: tuple[ForkView, ...]
    decisions: tuple[DecisionView, ...]
    done_steps: int
    leader: int | None
    finished: Finished | None
    answers: dict[str, TaskAnswer]
    best_runs: dict[str, BestRun]
    embedding: dict[str, Float[np.ndarray, "dims"]]
    best_so_far: tuple[CostPoint, ...]

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks of a family; empty for a study of one run."""
        return tuple(self.settings.get("tasks", ()))

    @property
    def steps(self) -> int:
        """Length of one run."""
        return int(self.settings.get("steps", 0))

    @property
    def total_steps(self) -> int:
        """The most steps that all forks together will take."""
        return int(self.settings.get("total_steps", self.steps))

    @property
    def costs(self) -> dict[str, float]:
        """The cost of a run of each task of a family; empty if all cost the same."""
        return self.settings.get("strategy", {}).get("costs", {})

    @property
    def budget(self) -> float:
        """How many runs a family makes, or what they may cost in all."""
        return self.settings.get("strategy", {}).get("budget", 1)

    @property
    def share_done(self) -> float:
        """How much of the study is done: of its steps, or of the budget of a family whose runs have costs."""
        if not self.costs:
            return self.done_steps / max(self.total_steps, 1)
        return self.cost_done / self.budget

    @property
    def cost_done(self) -> float:
        """What the runs of a family have cost so far, in the unit of its budget."""
        return sum(self.costs.get(fork.task, 1.0) * fork.step / max(self.steps, 1) for fork in self.forks)

    @property
    def spent(self) -> dict[str, float]:
        """Seconds up to the latest decision by what they were spent on; empty if nobody measured them."""
        return self.decisions[-1].spent if self.decisions else {}

    @property
    def weights(self) -> str:
        """The weights whose value decides, "raw" or "averaged"; the others if these were not observed."""
        wanted = str(self.settings.get("strategy", {}).get("weights", "raw"))
        observed = next((fork.values for fork in self.forks if fork.values), {wanted: ()})
        return wanted if wanted in observed else next(iter(observed))

    def value(self, fork: ForkView) -> float | None:
        """The latest value of a fork: of the weights that decide, or of the others if these were not observed."""
        return fork.last_values.get(self.weights, next(iter(fork.last_values.values()), None))

    def fork(self, number: int) -> ForkView:
        """The fork of this number."""
        return next(fork for fork in self.forks if fork.fork == number)

    @property
    def best(self) -> ForkView | None:
        """The winner, or the leader while the study is not over; a family has none."""
        number = self.finished.fork if self.finished is not None else self.leader
        return None if number is None else self.fork(number)

    @property
    def kept(self) -> BestState | None:
        """The best moment of all forks, whose weights the study returns; None if it keeps the ends of runs."""
        end = self.finished
        if end is not None and end.fork is not None and end.value is not None and end.last is not None:
            return BestState(end.value, end.weights, end.fork, end.step)
        sign = Objective(self.settings.get("mode", "min")).sign
        bests = [fork.kept for fork in self.forks if fork.kept is not None]
        return max(bests, key=lambda best: sign * best.value, default=None)

    @property
    def saved_steps(self) -> int:
        """How many steps fewer the study took because it ended early."""
        reasons = self.decisions[-1].reasons if self.finished is not None and self.decisions else ()
        return next((int(reason["saved"]) for reason in reasons if reason.kind == "turned"), 0)

    def whole_run(self, number: int) -> tuple[tuple[int, ...], dict[str, tuple[float, ...]]]:
        """What was observed along a fork's whole run: its ancestors up to where it was cloned, then itself."""
        line = self.lineage_of(number)
        steps = list[int]()
        values = {weights: list[float]() for weights in line[0].values}
        for fork, clone in zip(line, (*line[1:], None), strict=True):
            count = len(fork.steps) if clone is None else bisect_right(fork.steps, clone.start)
            steps += fork.steps[:count]
            for weights, column in values.items():
                column += fork.values.get(weights, ())[:count]
        return tuple(steps), {weights: tuple(column) for weights, column in values.items()}

    def lineage_of(self, number: int) -> tuple[ForkView, ...]:
        """A fork and its ancestors, the oldest first."""
        forks = {fork.fork: fork for fork in self.forks}
        line = [forks[number]]
        while (parent := line[-1].parent) is not None:
            line.append(forks[parent])
        return tuple(reversed(line))
