"""The best moment of each fork whose state was kept: the weights that a study returns, and where clones may begin.

Runs can get worse after their best moment, because they overfit or blow up. So a runner keeps the state of an
observation that is better than all before it on the path of its fork. A report says of which step it kept the state.
Everything else follows from the reports, so a study that is continued knows the same states.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.study.events import Interval, Report
from paceline.study.state import ForkState, StudyState
from paceline.study.turning import TurnRule


@dataclass(frozen=True, slots=True)
class BestState:
    """The best moment of a run, whose state was kept.

    Args:
        value: what was observed, in the user's units.
        weights: the weights that the value is of, "raw" or "averaged".
        fork: the fork that observed it.
        step: updates done.
        task: number of the fork's task in a family.
    """

    value: float
    weights: str
    fork: int
    step: int
    task: int = 0

    @property
    def origin(self) -> tuple[int, int]:
        """Fork and step of its checkpoint; (m, 0) is where runs of task m begin."""
        return (self.fork if self.step else self.task), self.step


@dataclass(frozen=True, slots=True)
class KeepRule:
    """Which observations of an interval are so good that their state is kept.

    Args:
        sign: +1 if bigger values are better, -1 if smaller ones are.
        to_beat: the best value on the path so far; None if there is none.
        turn: when the interval ends early; None if it does not.
    """

    sign: float
    to_beat: float | None = None
    turn: TurnRule | None = None

    def best_of(self, values: Mapping[str, float]) -> tuple[str, float]:
        """The better of the raw and the averaged weights, with its value; of equal ones the raw weights."""
        return max(values.items(), key=lambda item: (self.sign * item[1], item[0] == "raw"))

    def is_beaten_by(self, values: Mapping[str, float]) -> bool:
        """Whether an observation is better than all before it."""
        _, value = self.best_of(values)
        return self.to_beat is None or self.sign * value > self.sign * self.to_beat


@dataclass(slots=True)
class BestStates:
    """The kept states of a study, as its reports tell them.

    Args:
        sign: +1 if bigger values are better, -1 if smaller ones are.
    """

    sign: float
    _found: dict[int, tuple[int, list[BestState]]] = field(default_factory=dict[int, tuple[int, list[BestState]]])
    _inherited: dict[int, BestState | None] = field(default_factory=dict[int, BestState | None])  # when it was cloned

    def of(self, state: StudyState, fork: ForkState, end: int | None = None) -> BestState | None:
        """The best kept state on the path of a fork, up to a step if one is given; None if there is none."""
        heirs = list[int]()  # forks that inherit what is found; a loop, since lineages may be long
        while (found := self._own(state, fork, end)) is None and fork.parent is not None:
            if end is None or end >= fork.start:
                if fork.id in self._inherited:
                    found = self._inherited[fork.id]
                    break
                heirs.append(fork.id)
                end = fork.start
            fork = state.forks[fork.parent]
        self._inherited.update(dict.fromkeys(heirs, found))
        return found

    def _own(self, state: StudyState, fork: ForkState, end: int | None) -> BestState | None:
        bests = reversed(self._of_reports(state, fork))
        return next((best for best in bests if end is None or best.step <= end), None)

    def overall(self, state: StudyState) -> BestState | None:
        """The best kept state of all forks; of equal ones that of the first fork."""
        bests = [best for _, fork in sorted(state.forks.items()) if (best := self.of(state, fork)) is not None]
        return max(bests, key=lambda best: self.sign * best.value, default=None)

    def rule(self, state: StudyState, interval: Interval) -> KeepRule:
        """What an observation of an interval has to beat."""
        best = self.of(state, state.forks[interval.fork], interval.start)
        return KeepRule(self.sign, None if best is None else best.value)

    def needed(self, state: StudyState) -> set[tuple[int, int]]:
        """Fork and step of the states to keep on disk: the best of all, and as many as there are living forks."""
        overall = self.overall(state)
        if overall is None:
            return set()
        living = [fork for _, fork in sorted(state.forks.items()) if fork.alive]
        bests = [best for fork in living if (best := self.of(state, fork)) is not None]
        ranked = sorted(bests, key=lambda best: -self.sign * best.value)
        origins = list(dict.fromkeys(best.origin for best in [overall, *ranked]))
        return set(origins[: max(1, len(living))])

    def _of_reports(self, state: StudyState, fork: ForkState) -> list[BestState]:
        """The kept states that the reports of a fork tell of, each better than the one before."""
        count, bests = self._found.get(fork.id, (0, []))
        if count != len(fork.reports):
            task = state.first_interval(fork).task
            reports = [report for report in state.reports(fork) if report.kept is not None]
            bests = [kept_state(report, self.sign, task) for report in reports]
            self._found[fork.id] = len(fork.reports), bests
        return bests


def kept_state(report: Report, sign: float, task: int = 0) -> BestState:
    """The best moment that a report tells of; `sign` is +1 if bigger values are better, -1 if smaller ones are."""
    assert report.kept is not None
    row = report.steps.index(report.kept)
    values = {weights: column[row] for weights, column in report.values.items()}
    weights, value = KeepRule(sign).best_of(values)
    return BestState(value, weights, report.fork, report.kept, task)
