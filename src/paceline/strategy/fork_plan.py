"""Plans: how many forks live when, and what that costs.

A plan is the number of forks at the start and the rungs at which it changes. Its cost is known before the study starts,
because every step of every fork counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from math import ceil, floor, isfinite

from paceline.errors import InputError
from paceline.strategy.horizon_settings import HORIZON

ROUNDING = 1e-9  # shares closer than this are the same


@dataclass(frozen=True, slots=True)
class Rung:
    """A point of the run at which the forks are compared.

    Args:
        share: how much of the run is done.
        forks: how many forks go on.
        clones: how many of these are new clones of the best.
    """

    share: float
    forks: int
    clones: int = 0


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """How many forks live when.

    Args:
        initial_forks: forks at the start.
        rungs: when to compare them, in order.
        protect_leader: whether to keep the fork that was best at the first challenge until a better one with a higher
            rate takes its place.
        edge_decades: how far beyond the rates tried so far to look, if the best of a shrinking set runs at the lowest
            or the highest of them. Its worst survivor is replaced by a clone of the best at that rate. 0 switches this
            off.
    """

    initial_forks: int
    rungs: tuple[Rung, ...]
    protect_leader: bool = False
    edge_decades: float = 0.0

    def __post_init__(self) -> None:
        if self.initial_forks < 1 or self.initial_forks != int(self.initial_forks):
            raise InputError(f"forks must be at least 1, got {self.initial_forks}: pass a whole number")
        shares = [0.0, *(rung.share for rung in self.rungs), 1.0]
        if not _is_increasing(shares):
            raise InputError(f"rungs must increase inside (0, 1), got {shares[1:-1]}: sort them")

    def for_steps(self, steps: int) -> "ForkPlan":
        """The plan for a run of so many steps.

        In short runs, rungs that only correct rates are left out if they have no step of their own.
        """
        points = self._rounded_points(steps)
        may_go = [self._is_correction(i) for i in range(len(self.rungs))]
        kept, last = list[Rung](), 0
        for i, rung in enumerate(self.rungs):
            later = next(
                (point for point, is_free in zip(points[i + 2 : -1], may_go[i + 1 :], strict=True) if not is_free),
                steps,
            )
            if may_go[i] and not last < points[i + 1] < later:
                continue
            kept.append(rung)
            last = points[i + 1]
        return replace(self, rungs=tuple(kept))

    def _is_correction(self, i: int) -> bool:
        """Whether rates are corrected at a rung, and nothing else happens there."""
        return self.protect_leader and not self.rungs[i].clones and self.rungs[i].forks == self._fork_counts[i]

    def change_points(self, steps: int) -> list[int]:
        """Steps at which intervals begin and end, rounded to the side that costs less."""
        points = self._rounded_points(steps)
        if not _is_increasing(points):
            enough = next(n for n in count(steps + 1) if _is_increasing(self._rounded_points(n)))
            raise InputError(
                f"{steps:,} steps are too few for rungs at {[rung.share for rung in self.rungs]} of the run, each "
                f"at a step of its own: train for {enough:,} steps or more, or use fewer rungs"
            )
        return points

    def _rounded_points(self, steps: int) -> list[int]:
        rounded = [
            (floor if after <= before else ceil)(rung.share * steps)
            for rung, (before, after) in zip(self.rungs, pairwise(self._fork_counts), strict=True)
        ]
        return [0, *rounded, steps]

    @property
    def _fork_counts(self) -> list[int]:
        """How many forks live in each interval."""
        return [self.initial_forks, *(rung.forks for rung in self.rungs)]

    def challenge_steps(self, steps: int) -> set[int]:
        """Steps at which clones challenge the best fork; before the first challenge, a lead is luck."""
        points = zip(self.change_points(steps)[1:], self.rungs, strict=False)
        return {step for step, rung in points if rung.clones and rung.share >= HORIZON.challenge_shares[0]}

    def total_steps(self, steps: int) -> int:
        """Steps of all forks together."""
        return sum(forks * (stop - start) for forks, start, stop in self.intervals(steps))

    def intervals(self, steps: int) -> list[tuple[int, int, int]]:
        """How many forks train from which step to which."""
        points = pairwise(self.change_points(steps))
        return [(forks, start, stop) for forks, (start, stop) in zip(self._fork_counts, points, strict=True)]

    def longest_interval(self, steps: int) -> int:
        """Steps of the longest interval."""
        return max(stop - start for start, stop in pairwise(self.change_points(steps)))


def _is_increasing(points: Sequence[float]) -> bool:
    return all(a < b for a, b in pairwise(points))


def greedy_plan(forks: int, intervals: int) -> ForkPlan:
    """Algorithm 1 of the paper: after each of equal intervals all forks become clones of the best."""
    return _equal_intervals(forks, intervals, forks)


def keep_each_plan(forks: int, intervals: int) -> ForkPlan:
    """The paper's alternative: each run goes on, with a new rate."""
    return _equal_intervals(forks, intervals, 0)


def _equal_intervals(forks: int, intervals: int, clones: int) -> ForkPlan:
    if intervals < 1:
        raise InputError(f"intervals must be at least 1, got {intervals}: a new rate is chosen at each")
    return ForkPlan(forks, tuple(Rung(k / intervals, forks, clones) for k in range(1, intervals)))


def horizon_plan(cost: float) -> ForkPlan:
    """The plan of `horizon` for a cost in runs: never more than `cost * steps` steps in all.

    - 4 and more: eight forks at first, then `cost` of them to the end. The best goes on; two are new clones at each
      rung.
    - 1.475 to 4: halving from eight forks to two, which go on to 20 %. Then the leader goes on, and challengers run
      beside it to the end: one from 20 % on, further ones from 35 % on, or as late as the cost demands.
    - 1.375 to 1.475: the same without challengers, and the second fork goes as early as the cost demands.
    """
    if not isfinite(cost):
        raise InputError(f"cost must be a finite number of runs, got {cost}: pass 2.3, or 1 for a single run")
    if cost >= HORIZON.early_clones_from_cost:
        return _wide_plan(floor(cost + ROUNDING))
    if cost >= HORIZON.forks_from_cost:
        return _leader_plan(cost)
    least = HORIZON.forks_from_cost
    raise InputError(f"a plan with forks costs at least {least} runs, got {cost}: use cost=1 for a single run")


def _leader_plan(cost: float) -> ForkPlan:
    """A halving to two forks, then the leader and, as far as the cost allows, others beside it.

    The second fork of the halving comes first, then challengers.
    """
    s = HORIZON
    extra = cost - s.forks_from_cost + s.halving[-1][0]
    to_first_challenge = s.challenge_shares[0]
    second_fork_stays = extra if extra < to_first_challenge + s.min_challenge else to_first_challenge
    starts = _challenger_starts(extra - second_fork_stays)
    rungs = {share: Rung(share, forks) for share, forks in s.halving}
    if second_fork_stays < min(starts, default=1.0) - ROUNDING:
        rungs[second_fork_stays] = Rung(second_fork_stays, 1)
    later = [share for share in s.challenge_shares if starts and share > starts[0]]
    for share in [*starts, *_apart(later, starts, s.min_challenge)]:
        rungs[share] = Rung(share, 1 + sum(start <= share for start in starts), 1)
    for share in _apart(s.correction_shares, list(rungs), s.min_share_between_rungs):
        forks = next(rung.forks for _, rung in sorted(rungs.items(), reverse=True) if rung.share < share)
        rungs[share] = Rung(share, forks)
    in_order = tuple(rung for _, rung in sorted(rungs.items()))
    return ForkPlan(s.initial_forks, in_order, protect_leader=True, edge_decades=s.edge_decades)


def _challenger_starts(cost: float) -> list[float]:
    """When challengers begin that run to the end and cost so many runs together: each as early as it may."""
    starts, earliest = list[float](), HORIZON.challenge_shares[0]
    while cost >= HORIZON.min_challenge - ROUNDING:
        start = max(earliest, 1.0 - cost)
        if starts and start < starts[-1] + HORIZON.min_challenge:  # both at once
            starts[-1] = start
        starts.append(start)
        cost, earliest = cost - (1.0 - start), HORIZON.challenge_shares[1]
    return starts


def _apart(shares: Sequence[float], others: Sequence[float], gap: float) -> list[float]:
    """The shares that no other one is close to."""
    return [share for share in shares if all(abs(share - other) >= gap - ROUNDING for other in others)]


def side_by_side_plan(forks: int) -> ForkPlan:
    """As many forks from the start to the end; at each rung the worst become new clones of the best."""
    clones = min(HORIZON.clones, forks - 1)
    shares = (*HORIZON.early_clone_shares, *HORIZON.challenge_shares)
    return ForkPlan(forks, tuple(Rung(share, forks, clones) for share in shares), protect_leader=True)


def _wide_plan(forks: int) -> ForkPlan:
    """Eight forks at first, for a finer grid of rates than `forks` gives. One fork fewer at the end pays for it."""
    s = HORIZON
    if forks >= s.initial_forks:
        return side_by_side_plan(forks)
    first, second = s.halving[0][0], s.halving[1][0]
    early, last = s.early_clone_shares[-1], s.challenge_shares[-1]
    rungs = (
        Rung(first, max(forks, s.min_forks_at_first_rung)),
        Rung(second, forks),
        *(Rung(share, forks, s.clones) for share in (early, *s.challenge_shares[:-1])),
        Rung(last, forks - 1, s.clones),
    )
    return ForkPlan(s.initial_forks, rungs, protect_leader=True, edge_decades=s.edge_decades)
