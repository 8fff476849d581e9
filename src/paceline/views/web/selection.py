"""Which part of a study is shown: all of a small one.

Of a large one: the forks that are running, lead, won or came last, with their ancestors; reports evenly spaced along
each and the latest ones; the latest decisions. Nothing is averaged, so every number shown was observed.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from paceline.study import Decided, StudyState
from paceline.views.projection import Selection

MAX_FORKS, MAX_REPORTS, MAX_DECISIONS = 120, 1_200, 40


def select_all(state: StudyState, decision: int | None) -> Selection:
    """All of a study, or all up to a decision, by its number from 0."""
    return Selection(end=None if decision is None else _first_report_after(state, decision))


def select_part(state: StudyState, forks: Sequence[int], decision: int | None) -> Selection:
    """A part of a study.

    Args:
        state: the study.
        forks: numbers of forks that must be in it.
        decision: number of the decision that it ends with, from 0; None for the latest.
    """
    required = [*forks, *([] if decision is None else _forks_of(state, decision))]
    shown = frozenset(_shown_forks(state, required))
    end = None if decision is None else _first_report_after(state, decision)
    return Selection(shown, end, max(MAX_REPORTS // max(len(shown), 1), 3), MAX_DECISIONS)


def _first_report_after(state: StudyState, decision: int) -> int:
    """The number of the first report after a decision, which is where its consequences end."""
    later = bisect_right(state.report_numbers, state.decisions[decision].event)
    return state.report_numbers[later] if later < len(state.report_numbers) else state.count


def _shown_forks(state: StudyState, required: Sequence[int]) -> Iterable[int]:
    """The required forks, those that the latest decisions rank, running and recent ones, with their ancestors."""
    shown = dict.fromkeys(required)
    for decision in reversed(state.decisions[-2:]):
        shown |= dict.fromkeys(_ranked_forks(state.decided(decision))[: MAX_FORKS // 3])
    recent = sorted(state.forks, reverse=True)
    running = [number for number in recent if state.forks[number].alive and state.forks[number].running]
    most = MAX_FORKS + len(required)
    for number in [*running, *recent]:
        if len(shown) >= most:
            break
        ancestor: int | None = number
        while ancestor is not None and ancestor not in shown and len(shown) < most:
            shown[ancestor] = None
            ancestor = state.forks[ancestor].parent
    return (number for number in shown if number in state.forks)


def _forks_of(state: StudyState, decision: int) -> list[int]:
    """The forks that a decision ranks, calls best or trains."""
    made = state.decisions[decision]
    trained = (state.interval(number).fork for number in made.intervals[:MAX_FORKS])
    return [*_ranked_forks(state.decided(made)), *trained][:MAX_FORKS]


def _ranked_forks(event: Decided) -> list[int]:
    """The forks that a decision ranks, or calls best."""
    rows = [*event.details.get("ranking", []), *event.details.get("best", [])]
    return [int(row["fork"]) for row in rows]
