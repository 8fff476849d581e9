"""A decision in English: which clones were made and why, which forks were dropped, and what came of it."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from paceline.study import Interval, Reason, Report, StudyState, column, describe, describe_failure
from paceline.views.data import Band
from paceline.views.format import format_band, format_number
from paceline.views.projection import forecasts_by_fork


class DecisionText(NamedTuple):
    """One decision: when it was made, how long it took, and what there is to say about it."""

    round: int
    step: int
    seconds: float
    sentences: tuple[str, ...]


def decision_text(state: StudyState, at: int) -> DecisionText:
    """Explain a decision.

    Args:
        state: the study.
        at: number of the decision, from 0.
    """
    event = state.decided(state.decisions[at])
    return DecisionText(event.round, event.step, event.seconds, tuple(_sentence(text) for text in _texts(state, at)))


def decision_texts(state: StudyState) -> list[DecisionText]:
    """Explain every decision of a study, in order."""
    return [decision_text(state, at) for at in range(len(state.decisions))]


def _texts(state: StudyState, at: int) -> Iterator[str]:
    decision = state.decisions[at]
    event = state.decided(decision)
    noun = "run" if state.settings.get("tasks") else "fork"
    bands = forecasts_by_fork(event.details, state.settings)
    intervals = [(state.interval(n), state.report_on(n)) for n in decision.intervals]
    clones = {interval.fork for interval, _ in intervals if interval.parent is not None}
    why = {reason["fork"]: reason["why"] for reason in event.reasons if reason.kind == "clone"}
    yield from (
        describe(reason) for reason in event.reasons if not (reason.kind == "clone" and reason["fork"] in clones)
    )
    if noun == "fork":
        yield from _continued([interval for interval, _ in intervals])
    for interval, report in intervals:
        outcome = _outcome(bands.get(interval.fork), report)
        if interval.parent is not None:
            yield _clone(interval, why.get(interval.fork)) + outcome
        elif outcome:
            yield f"{noun} {interval.fork}.{outcome}"
    yield from _dropped(state, decision.dropped, noun)
    for interval, report in intervals:
        if report is not None and report.failure is not None:
            verb = "ended" if report.failure.is_turn else "failed"
            yield f"{noun} {interval.fork} {verb} at step {report.stop:,}: {describe_failure(report.failure)}"
    if state.is_finished and at == len(state.decisions) - 1:
        yield "the study is over"


def _continued(intervals: Sequence[Interval]) -> Iterator[str]:
    """The forks that go on."""
    old = [interval for interval in intervals if interval.parent is None and interval.start > 0]
    if old:
        several = len(old) > 1
        names = ", ".join(str(interval.fork) for interval in old)
        stop = max(interval.stop for interval in old)
        yield f"fork{'s' * several} {names} continue{'' if several else 's'} to step {stop:,}"


def _dropped(state: StudyState, forks: Sequence[int], noun: str) -> Iterator[str]:
    """The forks that were dropped: those that are behind in one sentence, each other one with its reason."""
    reasons = {fork: drop.reason for fork in forks if (drop := state.drop_of(state.forks[fork])) is not None}
    for fork, reason in reasons.items():
        if reason.kind != "behind":
            yield f"{noun} {fork} was dropped: {describe(reason)}"
    behind = [
        f"{fork} at {format_number(reason['value'])}" for fork, reason in reasons.items() if reason.kind == "behind"
    ]
    if len(behind) == 1:
        yield f"{noun} {behind[0]} is behind and dropped"
    elif behind:
        yield f"{noun}s {', '.join(behind[:-1])} and {behind[-1]} are behind and dropped"


def _clone(interval: Interval, why: Reason | None) -> str:
    """A clone: its parent, its rate, and why it has that rate."""
    schedule, start = interval.schedule, interval.start
    before, now = (float(schedule.multiplier(max(step, 0))) for step in (start - 1, start))
    kind = "rate" if schedule.tuned_base is None else "peak rate"
    change = (
        f"{kind} {format_number(now)}, as before"
        if before == now
        else f"{kind} {format_number(now)} instead of {format_number(before)}"
    )
    because = "" if why is None else f" ({describe(why)})"
    return f"fork {interval.fork} became a clone of fork {interval.parent} at step {start:,}: {change}{because}."


def _outcome(band: Band | None, report: Report | None) -> str:
    """The forecast, and what came of it."""
    if band is None:
        return ""
    forecast = f" Its forecast was {format_band(band)}"
    if report is None:
        return f"{forecast}."
    values = column(report.values, band.weights)
    if not values or not isfinite(values[-1]) or (report.failure is not None and not report.failure.is_turn):
        return f"{forecast}; it failed."
    if report.stop != band.step:  # a forecast of the final value, made on the way there
        return f"{forecast}; at step {report.stop:,} its value was {format_number(values[-1])}."
    inside = "inside" if band.low <= values[-1] <= band.high else "outside"
    return f"{forecast}; the result was {format_number(values[-1])}, {inside} the band."


def _sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
