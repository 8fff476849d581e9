"""A study as plain named tuples: what its events add up to, for whatever draws it.

Live views feed it the events as they come, `show` the journal, and both then draw the same thing. Nothing is computed
that was not observed or journaled: a forecast is the one that the decision was made with.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from paceline.study import (
    BestRun,
    Created,
    Decided,
    Dropped,
    Event,
    Failed,
    Finished,
    Observed,
    Proposed,
    TaskAnswer,
)
from paceline.study.answers import answers_in, best_in, embedding_in
from paceline.traces import Schedule

State = Literal["running", "leading", "dropped", "failed", "ended", "won"]


class Band(NamedTuple):
    """A journaled forecast of a value at a step: median and 90 % band."""

    step: int
    low: float
    median: float
    high: float


class ForkView(NamedTuple):
    """One fork: its origin, where it stands, and what it observed itself, by weights; its task, in a family."""

    fork: int
    parent: int | None
    start: int
    step: int
    stop: int | None
    state: State
    reason: str
    schedule: Schedule
    forecast: Band | None
    steps: tuple[int, ...]
    values: dict[str, tuple[float, ...]]
    task: str = ""

    @property
    def rate(self) -> float:
        """The learning rate at the step it stands at."""
        return float(self.schedule(self.step))

    @property
    def multiplier(self) -> float:
        """The multiplier of the base it runs at: the rate itself where the base is constant."""
        return float(self.schedule.multipliers[-1])

    @property
    def last(self) -> dict[str, float]:
        """The latest value, by weights."""
        return {of: column[-1] for of, column in self.values.items() if column}


class StretchView(NamedTuple):
    """What a decision asked for: a fork is to run from `start` to `stop` at this multiplier of its base."""

    fork: int
    parent: int | None
    start: int
    stop: int
    multiplier: float


class DecisionView(NamedTuple):
    """One decision: when, why, who was dropped, and how long it took.

    `done` counts the steps of all forks before it, `proposed` is what it asked for, and `details` what the journal
    holds of the model it was made with (docs/journal.md).
    """

    round: int
    step: int
    reasons: tuple[str, ...]
    dropped: tuple[int, ...]
    seconds: float
    done: int
    proposed: tuple[StretchView, ...]
    details: dict[str, Any]


class Spent(NamedTuple):
    """The best value at the end of an interval so far, of either weights, once all forks had done so many steps."""

    done: int
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
    best_so_far: tuple[Spent, ...]

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
    def of(self) -> str:
        """The weights whose value decides, "raw" or "averaged"."""
        return str(self.settings.get("strategy", {}).get("of", "raw"))

    def value(self, fork: ForkView) -> float | None:
        """The latest value of a fork: of the weights that decide, or of the others where there are none."""
        return fork.last.get(self.of, next(iter(fork.last.values()), None))

    def fork(self, number: int) -> ForkView:
        """The fork of this number."""
        return next(fork for fork in self.forks if fork.fork == number)

    @property
    def best(self) -> ForkView | None:
        """The winner, or the leader while the study is not over; a family has none."""
        number = self.finished.fork if self.finished is not None else self.leader
        return None if number is None else self.fork(number)

    def whole_run(self, number: int) -> tuple[tuple[int, ...], dict[str, tuple[float, ...]]]:
        """What was observed along a fork's whole run: its ancestors up to where it was cloned, then itself."""
        line = self.line_of(number)
        steps, values = list[int](), {of: list[float]() for of in line[0].values}
        for fork, heir in zip(line, (*line[1:], None), strict=True):
            kept = len(fork.steps) if heir is None else bisect_right(fork.steps, heir.start)
            steps += fork.steps[:kept]
            for of, column in values.items():
                column += fork.values.get(of, ())[:kept]
        return tuple(steps), {of: tuple(column) for of, column in values.items()}

    def line_of(self, number: int) -> tuple[ForkView, ...]:
        """A fork and those it descends from, the first one first."""
        known = {fork.fork: fork for fork in self.forks}
        line = [known[number]]
        while (parent := line[-1].parent) is not None:
            line.append(known[parent])
        return tuple(reversed(line))


@dataclass(slots=True)
class _Growing:
    """A fork as its events come in."""

    parent: int | None
    start: int
    schedule: Schedule
    step: int
    stop: int | None = None
    state: State = "running"
    reason: str = ""
    forecast: Band | None = None
    steps: list[int] = field(default_factory=list[int])
    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    task: int = 0

    def report(self, event: Observed | Failed) -> None:
        """Add what an interval showed."""
        self.steps += event.steps
        for of, column in event.values.items():
            self.values.setdefault(of, []).extend(column)
        self.step, self.stop, self.forecast = event.stop if isinstance(event, Observed) else event.step, None, None
        if isinstance(event, Failed):
            self.state, self.reason = "failed", event.reason


@dataclass(slots=True)
class _Made:
    """A decision as its events come in."""

    event: Decided
    done: int
    dropped: list[int] = field(default_factory=list[int])
    proposed: list[StretchView] = field(default_factory=list[StretchView])

    def view(self) -> DecisionView:
        e = self.event
        so_far = tuple(self.dropped), e.seconds, self.done, tuple(self.proposed)
        return DecisionView(e.round, e.step, e.reasons, *so_far, e.details)


def read(events: Sequence[Event]) -> StudyView:
    """What the events of a study add up to."""
    settings, forks = dict[str, Any](), dict[int, _Growing]()
    decisions, bands, ranking = list[_Made](), dict[int, Band](), list[int]()
    done, finished, spent = 0, None, list[Spent]()
    for event in events:
        match event:
            case Created():
                settings = event.settings
            case Decided():
                decisions.append(_Made(event, done))
                bands, ranking = bands_of(event.details), [int(r["fork"]) for r in event.details.get("ranking", [])]
            case Dropped():
                forks[event.fork].state, forks[event.fork].reason = "dropped", event.reason
                decisions[-1].dropped.append(event.fork)
            case Proposed():
                fork = forks.setdefault(event.fork, _Growing(event.parent, event.start, event.schedule, event.start))
                fork.task = event.task
                fork.schedule, fork.stop, fork.forecast = event.schedule, event.stop, bands.get(event.fork)
                rate = float(event.schedule.multipliers[-1])
                if decisions:
                    decisions[-1].proposed.append(StretchView(event.fork, event.parent, event.start, event.stop, rate))
            case Observed() | Failed():
                done += (event.stop if isinstance(event, Observed) else event.step) - event.start
                forks[event.fork].report(event)
                if isinstance(event, Observed):
                    _note_best(spent, done, event, settings)
            case Finished():
                finished = event
            case _:
                pass
    tasks, best, leader = settings.get("tasks", []), best_in(events), None
    if tasks:
        _name_runs(forks, {run.fork for run in best.values()}, finished)
    else:
        leader = next((n for n in ranking if n in forks and forks[n].state == "running"), _furthest(forks, settings))
        _name_states(forks, leader, finished)
    views = [_fork_view(n, fork, tasks[fork.task] if tasks else "") for n, fork in sorted(forks.items())]
    made, told = tuple(d.view() for d in decisions), (answers_in(events), best, embedding_in(events))
    return StudyView(settings, tuple(views), made, done, leader, finished, *told, tuple(spent))


def _fork_view(number: int, f: _Growing, task: str) -> ForkView:
    standing = f.parent, f.start, f.step, f.stop, f.state, f.reason, f.schedule, f.forecast
    return ForkView(number, *standing, tuple(f.steps), {of: tuple(column) for of, column in f.values.items()}, task)


def _note_best(spent: list[Spent], done: int, event: Observed, settings: dict[str, Any]) -> None:
    """Add a value where it is the best so far; values of the tasks of a family do not compare."""
    better = max if settings.get("mode") == "max" else min
    ends = [column[-1] for column in event.values.values() if column and isfinite(column[-1])]
    if ends and not settings.get("tasks"):
        value = better(ends)
        if not spent or better(value, spent[-1].value) != spent[-1].value:
            spent.append(Spent(done, value))


def bands_of(details: dict[str, Any]) -> dict[int, Band]:
    """The journaled forecast of each fork at its next decision, from the details of a decision."""
    return {
        int(f["fork"]): Band(int(f["steps"][-1]), f["low"][-1], f["median"][-1], f["high"][-1])
        for f in details.get("forecast", [])
        if f["steps"] and None not in (f["low"][-1], f["median"][-1], f["high"][-1])
    }


def _furthest(forks: dict[int, _Growing], settings: dict[str, Any]) -> int | None:
    """The living fork with the best latest value among those that got furthest: earlier values do not compare."""
    of, sign = settings.get("strategy", {}).get("of", "raw"), 1.0 if settings.get("mode") == "max" else -1.0
    alive = {n: f for n, f in forks.items() if f.state == "running" and f.steps}
    furthest = max((f.step for f in alive.values()), default=0)

    def merit(number: int) -> float:
        values = alive[number].values
        return sign * values.get(of, next(iter(values.values())))[-1]

    return max((n for n, f in alive.items() if f.step == furthest), key=merit, default=None)


def _name_states(forks: dict[int, _Growing], leader: int | None, finished: Finished | None) -> None:
    for number, fork in forks.items():
        if fork.state == "running" and finished is not None:
            fork.state = "won" if number == finished.fork else "ended"
        elif number == leader:
            fork.state = "leading"


def _name_runs(forks: dict[int, _Growing], best: set[int], finished: Finished | None) -> None:
    """Runs of a family: those that are done have ended, and the best of each task leads, or won."""
    for number, fork in forks.items():
        if fork.state != "failed" and fork.stop is None:
            fork.state = ("leading" if finished is None else "won") if number in best else "ended"


def to_json(view: StudyView) -> dict[str, Any]:
    """The view as plain data, for scripts; numbers that are not finite become None."""
    best = view.best
    return {
        "settings": view.settings,
        "finished": view.finished is not None,
        "done_steps": view.done_steps,
        "total_steps": view.total_steps,
        "best": None if best is None else {"fork": best.fork, "values": best.last},
        "forks": [_fork_json(fork) for fork in view.forks],
        "decisions": [_decision_json(decision) for decision in view.decisions],
        **(_family_json(view) if view.tasks else {}),
    }


def _decision_json(decision: DecisionView) -> dict[str, Any]:
    """A decision without what it was made with, which is in the journal."""
    return {key: value for key, value in decision._asdict().items() if key not in ("done", "proposed", "details")}


def _family_json(view: StudyView) -> dict[str, Any]:
    """What a study of a family holds besides: the best run and the answer of each task, and where the tasks lie."""
    answers = {t: {**asdict(a), "schedule": a.schedule.to_json()} for t, a in view.answers.items()}
    best = {t: {**asdict(b), "schedule": b.schedule.to_json()} for t, b in view.best_runs.items()}
    places = {task: place.tolist() for task, place in view.embedding.items()}
    return {"tasks": list(view.tasks), "answers": answers, "best_runs": best, "embedding": places}


def finite_or_none(values: Mapping[str, Sequence[float]]) -> dict[str, list[float | None]]:
    """Columns as JSON can hold them."""
    return {of: [v if isfinite(v) else None for v in column] for of, column in values.items()}


def _fork_json(fork: ForkView) -> dict[str, Any]:
    band = None if fork.forecast is None else fork.forecast._asdict()
    return {
        **fork._asdict(),
        "schedule": fork.schedule.to_json(),
        "rate": fork.rate,
        "values": finite_or_none(fork.values),
        "forecast": band,
    }
