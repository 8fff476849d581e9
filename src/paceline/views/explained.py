"""A decision in words: who was cloned from whom at which rate and why, who was dropped, and what then happened."""

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

from paceline.study import Decided, Dropped, Event, Failed, Finished, Observed, Proposed
from paceline.study.recorded import column
from paceline.views.data import Band, bands_of
from paceline.views.words import band_in_words, number


class Explained(NamedTuple):
    """One decision: when it was made, how long it took, and what there is to say about it."""

    round: int
    step: int
    seconds: float
    sentences: tuple[str, ...]


def explained(events: Sequence[Event], of: str = "raw", *, family: bool = False) -> Explained:
    """Explain a decision.

    Args:
        events: the decision and all events up to the next one.
        of: the weights whose value decides.
        family: whether forks are whole runs of tasks.
    """
    decided = next(event for event in events if isinstance(event, Decided))
    bands, reports = bands_of(decided.details), {e.fork: e for e in events if isinstance(e, Observed | Failed)}
    proposals = [event for event in events if isinstance(event, Proposed)]
    clones = {event.fork: event for event in proposals if event.parent is not None}
    taken = set[str]()
    born, noun = list[str](), "run" if family else "fork"
    for fork, proposal in clones.items():
        because = _because(decided.reasons, fork)
        taken.update(reason for reason in decided.reasons if because and _is_about(reason, fork))
        born.append(_born(proposal, because) + _outcome(bands.get(fork), reports.get(fork), of))
    told = [_sentence(reason) for reason in decided.reasons if reason not in taken]
    went_on = [event.fork for event in proposals if event.parent is None and event.start > 0]
    if went_on and not family:
        several = len(went_on) > 1
        names = f"fork{'s' * several} {', '.join(map(str, went_on))} go{'' if several else 'es'} on"
        told.append(_sentence(f"{names} to step {max(e.stop for e in proposals if e.fork in went_on):,}"))
    foreseen = [
        f"{noun.capitalize()} {fork}." + _outcome(band, reports.get(fork), of)
        for fork, band in bands.items()
        if fork not in clones
    ]
    gone = _gone([event for event in events if isinstance(event, Dropped)], noun)
    failed = [
        _sentence(f"{noun} {e.fork} failed at step {e.step:,}: {e.reason}") for e in events if isinstance(e, Failed)
    ]
    ended = ["The study is over."] if isinstance(events[-1], Finished) else []
    return Explained(decided.round, decided.step, decided.seconds, (*told, *born, *foreseen, *gone, *failed, *ended))


def all_explained(events: Sequence[Event], of: str = "raw", *, family: bool = False) -> list[Explained]:
    """Explain every decision of a study, in order."""
    starts = [i for i, event in enumerate(events) if isinstance(event, Decided)]
    return [explained(events[a:b], of, family=family) for a, b in pairwise([*starts, len(events)])]


def _gone(dropped: Sequence[Dropped], noun: str) -> list[str]:
    """Who was dropped and why: those who fell behind together, others one by one."""
    behind = [f"{event.fork} at {event.reason[10:-10]}" for event in dropped if _fell_behind(event.reason)]
    others = [_sentence(f"{noun} {e.fork} was dropped: {e.reason}") for e in dropped if not _fell_behind(e.reason)]
    if not behind:
        return others
    are = f"{noun} {behind[0]} is" if len(behind) == 1 else f"{noun}s {', '.join(behind[:-1])} and {behind[-1]} are"
    return [*others, _sentence(f"{are} behind and dropped")]


def _fell_behind(reason: str) -> bool:
    """Whether it reads "its value 0.1631 is behind"."""
    return reason.startswith("its value ") and reason.endswith(" is behind") and reason.count(" ") == 4


def _is_about(reason: str, fork: int) -> bool:
    return reason.startswith(f"fork {fork} begins as a clone of fork ")


def _because(reasons: Sequence[str], fork: int) -> str:
    """Why a clone got its rate: what its reason says after the colon."""
    return next((reason.partition(": ")[2] for reason in reasons if _is_about(reason, fork)), "")


def _born(proposal: Proposed, because: str) -> str:
    """A clone: where it came from, its rate, and why."""
    schedule, start = proposal.schedule, proposal.start
    before, now = (float(schedule.multiplier(max(step, 0))) for step in (start - 1, start))
    kind = "rate" if schedule.tuned_base is None else "peak rate"
    change = (
        f"{kind} {number(now)}, as before" if before == now else f"{kind} {number(now)} in place of {number(before)}"
    )
    why = f", because {because}" if " is " in because else f" ({because})" if because else ""
    return f"Fork {proposal.fork} became a clone of fork {proposal.parent} at step {start:,}: {change}{why}."


def _outcome(band: Band | None, report: "Observed | Failed | None", of: str) -> str:
    """The forecast, and what came of it."""
    if band is None:
        return ""
    foreseen = f" Its forecast was {band_in_words(band)}"
    if report is None:
        return f"{foreseen}."
    values = column(report.values, of)
    if isinstance(report, Failed) or not values or not isfinite(values[-1]):
        return f"{foreseen}; it failed."
    if report.stop != band.step:  # a forecast of the end, made on the way there
        return f"{foreseen}; at step {report.stop:,} it stood at {number(values[-1])}."
    inside = "inside" if band.low <= values[-1] <= band.high else "outside"
    return f"{foreseen}; it came to {number(values[-1])}, {inside} the band."


def _sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
