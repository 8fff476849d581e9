"""Plans: how many forks live when, and what that costs.

A plan is the first number of forks and the rungs at which it changes. Its cost is known before the start: every step of
every fork counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from math import ceil, floor, isfinite

from paceline.errors import InputError


@dataclass(frozen=True, slots=True)
class Rung:
    """At this fraction of the run, go on with `forks` forks, of which `clones` are new clones of the best."""

    at: float
    forks: int
    clones: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """How many forks live when.

    Args:
        first: forks at the start.
        rungs: when to decide, in order.
        protect: keep the fork that was best at the first of the `challenges`, until one at a higher rate leads.
        edge: where the best of a shrinking set is the lowest or highest tried, replace its worst survivor by a clone of
            the best this many decades further out; 0 switches it off.
    """

    first: int
    rungs: tuple[Rung, ...]
    protect: bool = False
    edge: float = 0.0

    def __post_init__(self) -> None:
        if self.first < 1 or self.first != int(self.first):
            raise InputError(f"forks must be at least 1, got {self.first}: pass a whole number")
        ats = [0.0, *(rung.at for rung in self.rungs), 1.0]
        if not _increase(ats):
            raise InputError(f"rungs must increase inside (0, 1), got {ats[1:-1]}")

    def borders(self, steps: int) -> list[int]:
        """Steps at which intervals begin and end, rounded to the side that costs less."""
        points = self._points(steps)
        if not _increase(points):
            enough = next(n for n in count(steps + 1) if _increase(self._points(n)))
            raise InputError(
                f"{steps:,} steps are too few for rungs at {[rung.at for rung in self.rungs]} of the run, "
                f"where it decides, each at a step of its own: train for {enough:,} steps or more, or use fewer rungs"
            )
        return points

    def _points(self, steps: int) -> list[int]:
        alive = [self.first, *(rung.forks for rung in self.rungs)]
        rounded = [
            (floor if b <= a else ceil)(rung.at * steps)
            for rung, (a, b) in zip(self.rungs, pairwise(alive), strict=True)
        ]
        return [0, *rounded, steps]

    def challenges(self, steps: int) -> set[int]:
        """Steps at which clones challenge the best, from 20 % of the run on: before that a lead is luck."""
        borders = zip(self.borders(steps)[1:], self.rungs, strict=False)
        return {step for step, rung in borders if rung.clones and rung.at >= CHALLENGES[0]}

    def total_steps(self, steps: int) -> int:
        """Steps of all forks together."""
        alive = [self.first, *(rung.forks for rung in self.rungs)]
        return sum(n * (b - a) for n, (a, b) in zip(alive, pairwise(self.borders(steps)), strict=True))

    def longest(self, steps: int) -> int:
        """Steps of the longest interval."""
        return max(b - a for a, b in pairwise(self.borders(steps)))


def _increase(points: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(points))


def greedy_plan(forks: int, intervals: int) -> Plan:
    """Algorithm 1: at each of d equal intervals all forks become clones of the best."""
    return _even_plan(forks, intervals, forks)


def kept_plan(forks: int, intervals: int) -> Plan:
    """The paper's alternative: each run goes on, with a new rate."""
    return _even_plan(forks, intervals, 0)


def _even_plan(forks: int, intervals: int, clones: int) -> Plan:
    if intervals < 1:
        raise InputError(f"intervals must be at least 1, got {intervals}: the rate is chosen anew at each")
    return Plan(forks, tuple(Rung(k / intervals, forks, clones) for k in range(1, intervals)))


HALVING = (Rung(0.025, 5), Rung(0.05, 3), Rung(0.1, 2))
CHALLENGES = (0.2, 0.35, 0.5, 0.7)


def horizon_plan(cost: float) -> Plan:
    """The `horizon` plan for a cost in runs: never more than `cost * steps` steps in all.

    - 4 and more: a wide start, then as many forks to the end, the best untouched, two of them clones at each rung;
    - 2.275 to 4: halving, then a protected winner with one challenger, and a second one as long as the cost allows;
    - 1.5 to 2.275: halving, then the last two side by side as long as the cost allows, challenged where that is long;
    - 1.1 to 1.5: the same from four forks.
    """
    if not isfinite(cost):
        raise InputError(f"cost must be a finite number of runs, got {cost}: pass 2.3, or 1 for a single run")
    if cost >= 4:
        return _wide(floor(cost + 1e-9))
    if cost >= 3.175:
        rungs = (Rung(0.025, 5), Rung(0.05, 3), *(Rung(at, 3, 1) for at in CHALLENGES))
        return Plan(8, rungs, protect=True, edge=0.35)
    if cost >= 2.275:
        return Plan(8, (*HALVING, *_challenges(cost - 2.075, 3)), protect=True, edge=0.35)
    if cost >= 1.5:
        return Plan(8, (*HALVING, *_challenges(cost - 1.275, 2)), protect=True, edge=0.35)
    if cost >= 1.1:
        until = cost - 1.05
        return Plan(4, (Rung(0.025, 2), Rung(until - 1e-9, 1)), edge=0.35)
    raise InputError(f"a plan with forks costs at least 1.1 runs, got {cost}: use cost=1 for a single run")


def side_by_side(forks: int) -> Plan:
    """As many forks from the start to the end, all but the best and the next few made anew at each rung."""
    clones = min(2, forks - 1)
    return Plan(forks, tuple(Rung(at, forks, clones) for at in (0.05, 0.1, *CHALLENGES)), protect=True)


def _wide(forks: int) -> Plan:
    """Begin with eight forks, at finer steps of the rate than that many runs would allow; pay for it at the end."""
    if forks >= 8:
        return side_by_side(forks)
    rungs = (Rung(0.025, max(forks, 6)), Rung(0.05, forks), *(Rung(at, forks, 2) for at in (0.1, *CHALLENGES[:-1])))
    return Plan(8, (*rungs, Rung(CHALLENGES[-1], forks - 1, 2)), protect=True, edge=0.35)


def _challenges(until: float, forks: int) -> tuple[Rung, ...]:
    """Rungs with `forks` forks up to the fraction `until`, with one fewer from then on."""
    rungs = [Rung(at, forks, 1) for at in CHALLENGES if at < until - 0.1]
    if not rungs and forks == 3:
        return tuple(Rung(at, 2, 1) for at in CHALLENGES)
    if until < 1.0 - 1e-9:
        rungs.append(Rung(until - 1e-9, forks - 1, 0 if forks == 2 else 1))
        if forks == 3:
            rungs += [Rung(at, 2, 1) for at in CHALLENGES if at > until + 0.05]
    return tuple(rungs)
