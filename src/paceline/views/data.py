"""A study as plain named tuples: what its events add up to, for whatever draws it.

Live views feed it the events as they come, `show` the journal, and both then draw the same thing. Nothing is computed
that was not observed or journaled: a forecast is the one that the decision was made with.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from paceline.study import (
    BestRun,
    DecisionState,
    Event,
    Failure,
    Finished,
    ForkState,
    Interval,
    Reason,
    Report,
    StudyState,
    TaskAnswer,
)
from paceline.study.answers import answers_in, best_in, embedding_in
from paceline.study.wording import describe, describe_failure
from paceline.traces import Schedule

BY_FORK = ("ranking", "best", "forecast", "candidates", "p_fail")  # details with a row for each fork
State = Literal["running", "leading", "dropped", "failed", "ended", "won"]


class Band(NamedTuple):
    """A journaled forecast of a value at a step: median and 90 % band, and the weights that the value is of."""

    step: int
    low: float
    median: float
    high: float
    weights: str | None = None


class ForkView(NamedTuple):
    """One fork: its origin, where it stands, and what it observed itself, by weights; its task, in a family."""

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

    @property
    def reason(self) -> str:
        """Why it does not go on, in English; empty if it does."""
        if self.drop is not None:
            return describe(self.drop)
        return "" if self.failure is None else describe_failure(self.failure)

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


class DecisionView(NamedTuple):
    """One decision: when, why, who was dropped, and how long it took.

    `done` counts the steps of all forks before it, `proposed` is what it asked for, and `details` what the journal
    holds of the model it was made with (docs/journal.md).
    """

    round: int
    step: int
    reasons: tuple[Reason, ...]
    dropped: tuple[int, ...]
    seconds: float
    done: int
    proposed: tuple[Interval, ...]
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
        return str(self.settings.get("strategy", {}).get("weights", "raw"))

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


class Selection(NamedTuple):
    """Which part of a large study is read; `Selection()` is all of it.

    Args:
        forks: numbers of the forks that are read.
        end: number of an event; it and later ones are left out.
        reports: so many reports of each fork, evenly spaced, and as many of those since the first decision that is
            read.
        decisions: so many decisions, the latest.
    """

    forks: frozenset[int] | None = None
    end: int | None = None
    reports: int | None = None
    decisions: int | None = None


ALL = Selection()


def read(study: "StudyState | Iterable[Event]", selection: Selection = ALL) -> StudyView:
    """The view of a study, from its state or from its events."""
    state = study if isinstance(study, StudyState) else StudyState.of(study)
    end = state.count if selection.end is None else min(selection.end, state.count)
    settings = state.settings
    chosen = state.decisions_before(end)
    chosen = chosen if selection.decisions is None else chosen[-selection.decisions :]
    ends = None if selection.forks is None else _first_and_latest_intervals(state, selection.forks, end)
    decisions = [_decision(state, decision, selection.forks, ends) for decision in chosen]
    since = chosen[0].event if chosen else 0
    details = decisions[-1].details if decisions else {}
    bands = bands_of(details)
    numbers = [
        number
        for number, fork in sorted(state.forks.items())
        if fork.intervals[0] < end and (selection.forks is None or number in selection.forks)
    ]
    forks = {
        number: _fork(state, state.forks[number], selection, (since, end), bands.get(number)) for number in numbers
    }
    finished = state.finished if state.is_finished and end == state.count else None
    most = selection.decisions
    answers, best = answers_in(state, end, most), best_in(state, end, most)
    embedding = embedding_in(state, end, most)
    leader = None
    if settings.get("tasks"):
        forks = _with_run_states(forks, {run.fork for run in best.values()}, finished)
    else:
        ranking = [int(row["fork"]) for row in details.get("ranking", [])]
        running = {number for number, fork in forks.items() if fork.state == "running"}
        leader = next((number for number in ranking if number in running), _furthest(forks, settings))
        forks = _with_fork_states(forks, leader, finished)
    return StudyView(
        settings,
        tuple(forks.values()),
        tuple(decisions),
        _done_steps(state, end),
        leader,
        finished,
        answers,
        best,
        embedding,
        () if selection.forks is not None else _best_so_far(state, end),
    )


def _decision(
    state: StudyState, decision: DecisionState, shown: frozenset[int] | None, ends: set[int] | None
) -> DecisionView:
    """A decision: all of it, or the forks shown and the intervals among `ends`."""
    event = state.decided(decision)
    intervals = [state.interval(number) for number in decision.intervals if ends is None or number in ends]
    dropped = tuple(fork for fork in decision.dropped if shown is None or fork in shown)
    details = event.details if shown is None else _details_of(event.details, shown)
    return DecisionView(
        event.round, event.step, event.reasons, dropped, event.seconds, decision.done_steps, tuple(intervals), details
    )


def _first_and_latest_intervals(state: StudyState, forks: frozenset[int], end: int) -> set[int]:
    """The events of the first and the latest interval of each fork: a view reads no others."""
    intervals = (state.forks[fork].intervals for fork in forks)
    before = [numbers[: bisect_left(numbers, end)] for numbers in intervals]
    return {number for numbers in before if numbers for number in (numbers[0], numbers[-1])}


def _details_of(details: dict[str, Any], forks: frozenset[int]) -> dict[str, Any]:
    """The details of a decision, without forks that are not shown."""
    return {
        name: [row for row in rows if "fork" not in row or row["fork"] in forks] if name in BY_FORK else rows
        for name, rows in details.items()
    }


def _fork(
    state: StudyState, fork: ForkState, selection: Selection, events: tuple[int, int], forecast: Band | None
) -> ForkView:
    """A fork up to the second of two events; reports since the first are shown closer together."""
    since, end = events
    intervals = fork.intervals[: bisect_left(fork.intervals, end)]
    reported = fork.reports[: bisect_left(fork.reports, end)]
    first, latest = state.events[intervals[0]], state.events[intervals[-1]]
    assert isinstance(first, Interval)
    assert isinstance(latest, Interval)
    steps, values = list[int](), dict[str, list[float]]()
    last: Report | None = None
    for number in _selected_reports(reported, since, selection.reports):
        last = state.events[number]  # pyright: ignore[reportAssignmentType]
        assert isinstance(last, Report)
        steps += last.steps
        for weights, column in last.values.items():
            values.setdefault(weights, []).extend(column)
    running = len(intervals) > len(reported)
    failure = last.failure if last is not None else None
    drop = state.drop_of(fork) if fork.dropped is not None and fork.dropped < end else None
    tasks = state.settings.get("tasks", [])
    shown_parent = selection.forks is None or fork.parent in selection.forks
    return ForkView(
        fork=fork.id,
        parent=fork.parent if shown_parent else None,
        start=fork.start,
        step=last.stop if last is not None else fork.start,
        stop=latest.stop if running else None,
        state="dropped" if drop is not None else "failed" if failure is not None else "running",
        failure=failure,
        drop=drop.reason if drop is not None else None,
        schedule=latest.schedule,
        forecast=forecast if running else None,
        steps=tuple(steps),
        values={weights: tuple(column) for weights, column in values.items()},
        task=tasks[first.task] if tasks else "",
    )


def _selected_reports(numbers: Sequence[int], since: int, most: int | None) -> Sequence[int]:
    """So many of them evenly spaced, first and last among them, and the last so many after `since`."""
    if most is None or len(numbers) <= most:
        return numbers
    spaced = {numbers[i * (len(numbers) - 1) // (most - 1)] for i in range(most)}
    late = numbers[bisect_right(numbers, since) :][-most:]
    return sorted(spaced.union(late))


def _done_steps(state: StudyState, end: int) -> int:
    """Steps of all forks before an event. The state counts them at each decision."""
    if end >= state.count:
        return state.done_steps
    earlier = state.decisions_before(end)
    since, done = (earlier[-1].event, earlier[-1].done_steps) if earlier else (0, 0)
    for number in state.report_numbers[
        bisect_left(state.report_numbers, since) : bisect_left(state.report_numbers, end)
    ]:
        report = state.events[number]
        assert isinstance(report, Report)
        done += report.stop - report.start
    return done


def _best_so_far(state: StudyState, end: int) -> tuple[Spent, ...]:
    """The best value at the end of an interval, of either weights, as steps are spent; a family has none."""
    if state.settings.get("tasks"):
        return ()
    better = max if state.settings.get("mode") == "max" else min
    path, done = list[Spent](), 0
    for number in state.report_numbers[: bisect_left(state.report_numbers, end)]:
        report = state.events[number]
        assert isinstance(report, Report)
        done += report.stop - report.start
        values = [column[-1] for column in report.values.values() if column and isfinite(column[-1])]
        if report.failure is None and values:
            value = better(values)
            if not path or better(value, path[-1].value) != path[-1].value:
                path.append(Spent(done, value))
    return tuple(path)


def bands_of(details: dict[str, Any]) -> dict[int, Band]:
    """The journaled forecast of each fork at its next decision, from the details of a decision."""
    return {
        int(f["fork"]): Band(int(f["steps"][-1]), f["low"][-1], f["median"][-1], f["high"][-1], f.get("weights"))
        for f in details.get("forecast", [])
        if f["steps"] and None not in (f["low"][-1], f["median"][-1], f["high"][-1])
    }


def _furthest(forks: dict[int, ForkView], settings: dict[str, Any]) -> int | None:
    """The living fork with the best latest value among those that got furthest: earlier values do not compare."""
    weights = settings.get("strategy", {}).get("weights", "raw")
    sign = 1.0 if settings.get("mode") == "max" else -1.0
    alive = {number: fork for number, fork in forks.items() if fork.state == "running" and fork.steps}
    furthest = max((fork.step for fork in alive.values()), default=0)

    def merit(number: int) -> float:
        values = alive[number].values
        return sign * values.get(weights, next(iter(values.values())))[-1]

    return max((n for n, fork in alive.items() if fork.step == furthest), key=merit, default=None)


def _with_fork_states(forks: dict[int, ForkView], leader: int | None, finished: Finished | None) -> dict[int, ForkView]:
    """Forks with who leads, has ended or won."""

    def state(fork: ForkView) -> State:
        if fork.state == "running" and finished is not None:
            return "won" if fork.fork == finished.fork else "ended"
        return "leading" if fork.fork == leader else fork.state

    return {number: fork._replace(state=state(fork)) for number, fork in forks.items()}


def _with_run_states(forks: dict[int, ForkView], best: set[int], finished: Finished | None) -> dict[int, ForkView]:
    """Runs of a family: those that are done have ended, and the best of each task leads, or won."""

    def state(fork: ForkView) -> State:
        if fork.state == "failed" or fork.stop is not None:
            return fork.state
        return ("leading" if finished is None else "won") if fork.fork in best else "ended"

    return {number: fork._replace(state=state(fork)) for number, fork in forks.items()}


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
    fields = {key: value for key, value in decision._asdict().items() if key not in ("done", "proposed", "details")}
    return {**fields, "reasons": [{**r.to_json(), "sentence": describe(r)} for r in decision.reasons]}


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
        "reason": fork.reason,
        "failure": None if fork.failure is None else fork.failure.to_json(),
        "drop": None if fork.drop is None else fork.drop.to_json(),
        "schedule": fork.schedule.to_json(),
        "rate": fork.rate,
        "values": finite_or_none(fork.values),
        "forecast": band,
    }
