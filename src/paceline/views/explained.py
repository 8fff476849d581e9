"""Every decision in words: why it was made, what was expected of each fork, and what came of it."""

from paceline.views.bands import Fan, fans
from paceline.views.data import DecisionView, StudyView
from paceline.views.words import number


def explained(view: StudyView) -> tuple[tuple[DecisionView, tuple[str, ...]], ...]:
    """Each decision with its sentences: reasons as journaled, forecasts against what came, and who was dropped."""
    by_round: dict[int, list[Fan]] = {}
    for fan in fans(view):
        by_round.setdefault(fan.round, []).append(fan)
    dropped = {fork.fork: fork.reason for fork in view.forks if fork.reason}
    kind = "run" if view.tasks else "fork"
    return tuple(
        (
            decision,
            (
                *decision.reasons,
                *(_expected(fan, kind) for fan in by_round.get(decision.round, [])),
                *(f"{kind} {n} is dropped: {dropped.get(n, 'others are better')}" for n in decision.dropped),
            ),
        )
        for decision in view.decisions
    )


def _expected(fan: Fan, kind: str) -> str:
    band = f"{number(fan.median[-1])} ({number(fan.low[-1])} to {number(fan.high[-1])})"
    said = f"{kind} {fan.fork} was expected at {band} at step {fan.steps[-1]:,}"
    if not fan.seen:
        return f"{said}; nothing was observed of it yet"
    reached = "" if fan.seen_steps[-1] == fan.steps[-1] else f" at step {fan.seen_steps[-1]:,}, the last it observed"
    return f"{said}; it came to {number(fan.seen[-1])}{reached}"
