"""The view of a study, from its state: what it comes to, for whatever draws it.

All of a study is read, or a `Selection` of one that is too large to be shown whole.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from paceline.study import (
    BestState,
    DecisionState,
    Event,
    Failure,
    Finished,
    ForkState,
    Report,
    StudyState,
    answers_in,
    best_in,
    embedding_in,
    kept_state,
    reading,
)
from paceline.traces import Objective
from paceline.views.data import Band, CostPoint, DecisionView, ForkView, State, StudyView

BY_FORK = ("ranking", "best", "forecast", "candidates", "p_fail")  # details with a row for each fork


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


def study_view(study: "StudyState | Iterable[Event]", selection: Selection = ALL) -> StudyView:
    """The view of a study, from its state or from its events; if these contradict each other, a `JournalError`."""
    with reading():
        return _view(study, selection)


def _view(study: "StudyState | Iterable[Event]", selection: Selection) -> StudyView:
    state = study if isinstance(study, StudyState) else StudyState.of(study)
    end = state.count if selection.end is None else min(selection.end, state.count)
    settings = state.settings
    chosen = state.decisions_before(end)
    chosen = chosen if selection.decisions is None else chosen[-selection.decisions :]
    ends = None if selection.forks is None else _first_and_latest_intervals(state, selection.forks, end)
    decisions = [_decision(state, decision, selection.forks, ends, end) for decision in chosen]
    since = chosen[0].event if chosen else 0
    details = decisions[-1].details if decisions else {}
    forecasts = forecasts_by_fork(details, settings)
    numbers = [
        number
        for number, fork in sorted(state.forks.items())
        if fork.intervals[0] < end and (selection.forks is None or number in selection.forks)
    ]
    forks = {
        number: _fork(state, state.forks[number], selection, (since, end), forecasts.get(number)) for number in numbers
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
    state: StudyState, decision: DecisionState, shown: frozenset[int] | None, ends: set[int] | None, end: int
) -> DecisionView:
    """A decision up to event `end`: all of it, or the forks shown and the intervals among `ends`."""
    event = state.decided(decision)
    numbers = decision.intervals[: bisect_left(decision.intervals, end)]
    intervals = [state.interval(number) for number in numbers if ends is None or number in ends]
    dropped_at = {fork: state.forks[fork].dropped or 0 for fork in decision.dropped if shown is None or fork in shown}
    dropped = tuple(fork for fork, number in dropped_at.items() if number < end)
    details = event.details if shown is None else _details_of(event.details, shown)
    return DecisionView(
        event.round,
        event.step,
        event.reasons,
        dropped,
        event.seconds,
        decision.done_steps,
        tuple(intervals),
        details,
        event.spent,
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
    first, latest = state.interval(intervals[0]), state.interval(intervals[-1])
    reports = [state.report(number) for number in _selected_reports(reported, since, selection.reports)]
    last = reports[-1] if reports else None
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
        state="dropped" if drop is not None else "running" if failure is None else _state_after(failure),
        failure=failure,
        drop=drop.reason if drop is not None else None,
        schedule=latest.schedule,
        forecast=forecast if running else None,
        steps=tuple(step for report in reports for step in report.steps),
        values=_columns(reports),
        task=tasks[first.task] if tasks else "",
        kept=_kept(reports, state.settings),
    )


def _state_after(failure: Failure) -> State:
    return "turned" if failure.is_turn else "failed"


def _kept(reports: Sequence[Report], settings: dict[str, Any]) -> BestState | None:
    """The latest best moment that some reports of a fork tell of; each is better than the one before."""
    report = next((report for report in reversed(reports) if report.kept is not None), None)
    return None if report is None else kept_state(report, Objective(settings.get("mode", "min")).sign)


def _columns(reports: Sequence[Report]) -> dict[str, tuple[float, ...]]:
    """All values of some reports, by weights."""
    columns = dict[str, list[float]]()
    for report in reports:
        for weights, values in report.values.items():
            columns.setdefault(weights, []).extend(values)
    return {weights: tuple(column) for weights, column in columns.items()}


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
        report = state.report(number)
        done += report.stop - report.start
    return done


def _best_so_far(state: StudyState, end: int) -> tuple[CostPoint, ...]:
    """The best value at the end of an interval, of either weights, by the steps of all forks. A family has none."""
    if state.settings.get("tasks"):
        return ()
    better = max if state.settings.get("mode") == "max" else min
    points, done_steps = list[CostPoint](), 0
    for number in state.report_numbers[: bisect_left(state.report_numbers, end)]:
        report = state.report(number)
        done_steps += report.stop - report.start
        values = [column[-1] for column in report.values.values() if column and isfinite(column[-1])]
        if report.failure is None and values:
            value = better(values)
            if not points or better(value, points[-1].value) != points[-1].value:
                points.append(CostPoint(done_steps, value))
    return tuple(points)


def forecasts_by_fork(details: dict[str, Any], settings: dict[str, Any]) -> dict[int, Band]:
    """The journaled forecast of each fork at its next decision.

    Args:
        details: the details of a decision.
        settings: what the study was set up with.
    """
    return {
        int(row["fork"]): Band(
            int(row["steps"][-1]), row["low"][-1], row["median"][-1], row["high"][-1], forecast_weights(row, settings)
        )
        for row in details.get("forecast", [])
        if row["steps"] and None not in (row["low"][-1], row["median"][-1], row["high"][-1])
    }


def forecast_weights(forecast: Mapping[str, Any], settings: dict[str, Any]) -> str:
    """The weights that a journaled forecast is of.

    A journal of format 1 does not name them: they are raw if the forecast is of the end of the run and the study judges
    forks by that, and else the weights that decide.
    """
    strategy = settings.get("strategy", {})
    of_end = strategy.get("judge_by") == "final" and forecast["steps"][-1] == settings.get("steps")
    return forecast.get("weights") or ("raw" if of_end else str(strategy.get("weights", "raw")))


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
        if finished is not None and fork.fork == finished.fork:
            return "won"
        if fork.state == "running" and finished is not None:
            return "ended"
        return "leading" if fork.fork == leader else fork.state

    return {number: fork._replace(state=state(fork)) for number, fork in forks.items()}


def _with_run_states(forks: dict[int, ForkView], best: set[int], finished: Finished | None) -> dict[int, ForkView]:
    """Runs of a family: those that are done have ended, and the best of each task leads, or won."""

    def state(fork: ForkView) -> State:
        if fork.state == "failed" or fork.stop is not None:
            return fork.state
        return ("leading" if finished is None else "won") if fork.fork in best else "ended"

    return {number: fork._replace(state=state(fork)) for number, fork in forks.items()}
