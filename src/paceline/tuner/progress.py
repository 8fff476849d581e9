"""How far a study is: what its events, one after the other, add up to.

Live and replayed studies go through the same two functions: a decision becomes events, and an event becomes progress.
"""

from dataclasses import dataclass, field, replace

from paceline.errors import InputError
from paceline.strategy import Decision, Fork, History, Proposal
from paceline.study import Cloned, Decided, Dropped, Event, Failed, Finished, Observed, Proposed
from paceline.tuner.reports import reported


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """What is known, and what is open.

    Args:
        history: what a strategy may know.
        open: proposals without a report, by fork.
        finished: how the study ended.
        advice: the first reason of the latest decision.
    """

    history: History
    open: dict[int, Proposal] = field(default_factory=dict[int, Proposal])
    finished: Finished | None = None
    advice: str = ""

    def after(self, event: Event) -> "Progress":
        """One event further."""
        match event:
            case Decided():
                return replace(self, advice=event.reasons[0] if event.reasons else "")
            case Dropped():
                return replace(
                    self, history=self.history.with_fork(replace(self.history.fork(event.fork), alive=False))
                )
            case Proposed():
                p = Proposal(event.fork, event.parent, event.start, event.stop, event.schedule, event.round, event.task)
                known = {fork.id for fork in self.history.forks}
                fork = (
                    self.history.fork(p.fork)
                    if p.fork in known
                    else Fork(p.fork, p.parent, p.start, p.schedule, task=p.task)
                )
                history = self.history.with_fork(replace(fork, schedule=p.schedule, began=p.start))
                return replace(self, history=replace(history, round=p.round), open={**self.open, p.fork: p})
            case Observed() | Failed():
                if event.fork not in self.open:
                    raise InputError(f"fork {event.fork} reports without a proposal")
                fork = reported(self.history, event)
                rest = {number: p for number, p in self.open.items() if number != event.fork}
                return replace(self, history=self.history.with_fork(fork), open=rest)
            case Finished():
                return replace(self, finished=event)
            case _:
                return self


def consequences(history: History, decision: Decision, step: int) -> list[Event]:
    """The events that follow from a decision, in order."""
    events: list[Event] = [Dropped(fork, step, reason) for fork, reason in decision.drops]
    for p in decision.proposals:
        if p.parent is not None:
            events.append(Cloned(p.fork, p.parent, p.start))
        events.append(Proposed(p.fork, p.parent, p.start, p.stop, p.schedule, p.round, p.task))
    if not decision.proposals:
        of, value = history.goal.objective.of, None
        if decision.winner is not None:  # raw or averaged weights, whichever ended better
            sign, last = history.goal.objective.sign, history.fork(decision.winner).last
            of, value = max(last.items(), key=lambda item: sign * item[1])
        events.append(Finished(decision.winner, history.goal.steps, value, of))
    return events


def is_whole(decided: Decided, after: list[Event]) -> bool:
    """Whether all the events that follow from a decision are there."""
    expected = int(decided.details.get("proposals", 0))
    proposed = sum(isinstance(event, Proposed) for event in after)
    return bool(expected and proposed == expected) or any(isinstance(event, Finished) for event in after)
