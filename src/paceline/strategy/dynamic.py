"""Tuning one run on the fly: forks of the run try several rates, the best lead (paper, section 3).

One strategy, two presets. `greedy` is the paper's Algorithm 1. `horizon` is our default: it tunes a multiplier of a
base that decays to zero and judges forks by the loss of averaged weights, because a fork that lowers its rate always
looks better at once, whether or not it ends better (docs/design.md).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.shapes import HOLD_THEN_DECAY, Constant, Shape
from paceline.strategy.base import Decision, Fork, Goal, History, Strategy
from paceline.strategy.choose import Blind, ByModel, Choice, Chooser, Knowledge
from paceline.strategy.details import forecasts, rounded, surface
from paceline.strategy.guards import FailureGuard, Guard, MaxChange, MinSeparation
from paceline.strategy.look import SPEAKS, SPEAKS_ALONE, Outlook, with_looks
from paceline.strategy.plan import Plan, Rung, greedy_plan, horizon_plan, kept_plan, side_by_side
from paceline.strategy.rollback import with_rollback
from paceline.study import Interval, Reason, because
from paceline.traces import Objective, Schedule, Transform, Weights


@dataclass(frozen=True, slots=True)
class Dynamic(Strategy):
    """Forks, rungs, and a question asked at each.

    Args:
        plan: how many forks live when.
        base: the shape whose multiplier is tuned; constant tunes the rate itself.
        chooser: how a clone gets its rate.
        guards: which rates it may choose from.
        alphas: orders of the quantiles that clones maximise, in turn.
        weights: whose value is read, "raw" or "averaged".
        transform: on which scale the value is modelled.
        smooth: share of an interval's last observations that a fork's value is the mean of; 0 takes the last one.
        initial_rates: the rates of the first forks; by default on a grid.
        centred: the grid of first rates at the middles of equal parts of the bounds, not from bound to bound.
        judge_by: "now" judges forks by their latest values; "final" lets the law's forecast of their final value
            overrule that.
        max_change: largest change of a rate, in decades, that the law may choose.
    """

    plan: Plan
    base: Shape
    chooser: Chooser
    guards: tuple[Guard, ...]
    alphas: tuple[float, ...]
    weights: Weights = "averaged"
    transform: Transform = "log"
    smooth: float = 0.0
    initial_rates: tuple[float, ...] = ()
    centred: bool = True
    judge_by: str = "now"
    max_change: float = 0.45

    def __post_init__(self) -> None:
        if self.initial_rates and len(self.initial_rates) != self.plan.first:
            raise InputError(
                f"initial_rates must name {self.plan.first} rates, one per fork, got {len(self.initial_rates)}"
            )
        if not self.alphas or not all(0 < alpha < 1 for alpha in self.alphas):
            raise InputError(f"alphas must be quantile orders in (0, 1), got {self.alphas}")
        if self.judge_by not in ("now", "final"):
            raise InputError(
                f'judge_by must be "now" or "final", got {self.judge_by!r}: judge forks by their latest values, or by '
                "the forecast of their final ones"
            )

    @classmethod
    def greedy(
        cls,
        *,
        forks: int = 5,
        intervals: int = 20,
        keep_each: bool = False,
        max_change: float = 1.0,
        link: str = "linear",
        order: int = 1,
        initial_rates: Sequence[float] = (),
    ) -> "Dynamic":
        """Algorithm 1 of the paper, complete; `keep_each` lets every run go on with a new rate (no duplication)."""
        plan = kept_plan(forks, intervals) if keep_each else greedy_plan(forks, intervals)
        alphas = (0.75,) if forks == 1 else tuple((2 * i + 1) / (2 * forks) for i in range(forks))
        return cls(
            plan=plan,
            base=Constant(),
            chooser=ByModel(link=link, order=order),
            guards=(MaxChange(max_change), FailureGuard()),
            alphas=alphas,
            weights="raw",
            transform="identity",
            initial_rates=tuple(initial_rates),
            centred=False,
        )

    @classmethod
    def horizon(
        cls,
        *,
        cost: float = 2.3,
        forks: int | None = None,
        base: Shape | None = None,
        judge_by: str | None = None,
        max_change: float = 0.45,
        initial_rates: Sequence[float] = (),
    ) -> "Dynamic":
        """Halving, a protected winner and challengers, for `cost` runs; or `forks` to the end, on idle devices.

        `judge_by="final"` lets the law's forecast of the final value overrule rates and ranking where it is sure; a
        decision then takes a second or two. It is the default where one fork is left in the end, which
        nothing else corrects, and at costs of 4 and more, where enough forks go on to see that it is wrong.
        `max_change`, in decades, restricts the rates that it may choose.
        """
        if forks is not None and forks < 1:
            raise InputError(f"forks must be at least 1, got {forks}")
        plan = horizon_plan(cost) if forks is None else side_by_side(forks)
        if judge_by is None:
            alone, wide = bool(plan.rungs) and plan.rungs[-1].forks == 1, forks is None and cost >= 4
            judge_by = "final" if alone or wide else "now"
        return cls(
            plan=with_looks(plan) if judge_by == "final" else plan,
            base=HOLD_THEN_DECAY if base is None else base,
            chooser=Blind(),
            guards=(MaxChange(max_change), MinSeparation(), FailureGuard()),  # read only by choosers that use a model
            alphas=(0.5, 0.9),
            smooth=0.34,
            initial_rates=tuple(initial_rates),
            judge_by=judge_by,
            max_change=max_change,
        )

    def objective(self, objective: Objective) -> Objective:
        """The user's objective, read at the weights and on the scale this strategy wants."""
        return Objective(objective.mode, self.transform, self.weights)

    def total_steps(self, goal: Goal) -> int:
        """The plan's cost in steps; a single run may repeat an interval that failed, if only one."""
        steps = self.plan.total_steps(goal.steps)
        return steps + self.plan.longest(goal.steps) if steps == goal.steps else steps

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        return {
            "strategy": "dynamic",
            "plan": asdict(self.plan),
            "base": self.base.to_json(),
            "chooser": {"name": self.chooser.name, **asdict(self.chooser)},  # pyright: ignore[reportArgumentType]
            "guards": [{"name": guard.name, **asdict(guard)} for guard in self.guards],  # pyright: ignore[reportArgumentType]
            **{
                name: getattr(self, name)
                for name in (
                    "alphas",
                    "weights",
                    "transform",
                    "smooth",
                    "initial_rates",
                    "centred",
                    "judge_by",
                    "max_change",
                )
            },
        }

    def propose(self, history: History) -> Decision:
        """The next decision; where every fork has failed, a way back."""
        return with_rollback(history, self.total_steps(history.goal), self._decide)

    def _decide(self, history: History) -> Decision:
        """Start, or decide at a rung, or end."""
        if not history.forks:
            return self._start(history.goal)
        ranked = history.ranked(self.smooth)
        borders = self.plan.borders(history.goal.steps)
        if history.round >= len(borders) - 1:
            best = max(history.alive, key=lambda fork: (history.goal.objective.sign * fork.final_value, -fork.id))
            return Decision(winner=best.id, reasons=(because("ended best", fork=best.id, value=best.final_value),))
        return self._at_rung(history, ranked, self.plan.rungs[history.round - 1], borders)

    def _start(self, goal: Goal) -> Decision:
        """First rates on a grid, or the user's own."""
        stop = self.plan.borders(goal.steps)[1]
        n = self.plan.first
        if self.initial_rates:
            rates, (low, high) = np.array(self.initial_rates), (goal.lr_range.low, goal.lr_range.high)
            if rates.min() < low * (1 - 1e-9) or rates.max() > high * (1 + 1e-9):
                raise InputError(
                    f"initial_rates must lie within the bounds {low:g} to {high:g}, got {self.initial_rates}"
                )
        elif self.centred or n == 1:
            rates = goal.lr_range.from_unit((np.arange(n) + 0.5) / n)
        else:
            rates = goal.lr_range.from_unit(np.linspace(0.0, 1.0, n))
        intervals = tuple(
            Interval(i, None, 0, stop, Schedule([rate], [0, stop], goal.steps, self.base), 1)
            for i, rate in enumerate(rates)
        )
        return Decision(intervals, reasons=(because("start", rates=rates.tolist()),))

    def _at_rung(self, history: History, ranked: list[Fork], rung: Rung, borders: list[int]) -> Decision:
        """Who goes on, who becomes a clone of the best, who is dropped."""
        step, stop = borders[history.round], borders[history.round + 1]
        outlook = self._outlook(history) if self.judge_by == "final" and rung.at >= SPEAKS else None
        # nothing else corrects a last fork, so there the law is heard in any case
        contradiction = (
            outlook.contradiction(ranked[0], self.smooth) if outlook is not None and rung.forks > 1 else None
        )
        outlook = None if contradiction else outlook
        going = rung.forks - rung.clones
        if outlook is not None:  # one place is the law's; the leader's where there is only that one
            ranked = outlook.ranked(ranked, min(1, going - 1))
        best = ranked[0]
        first = self._protected(history, best)
        kept = [first, *(fork for fork in ranked if fork.id != first.id)][:going]
        clones = rung.forks - len(kept) if rung.clones else 0  # forks that failed are made up for
        knowledge = self.chooser.learn(history, borders) if clones or self._retunes(rung) else None
        builder = _Round(history, step, stop, knowledge, self, outlook)
        builder.reasons += [contradiction] if contradiction else []
        for fork in kept:
            if outlook is not None and rung.forks == 1 and rung.at >= SPEAKS_ALONE:
                builder.reconsider(fork)
            elif self._retunes(rung):
                builder.retune(fork, self.alphas[len(builder.intervals) % len(self.alphas)])
            else:
                builder.go_on(fork)
        if not clones and rung.forks > 1 and self.plan.edge and not self._retunes(rung):
            builder.edge(best, kept, self.plan.edge)
        for i in range(clones):
            builder.clone(best, self.alphas[i % len(self.alphas)])
        return builder.decision(ranked, self.smooth)

    def _outlook(self, history: History) -> Outlook | None:
        return Outlook.of(history)

    def _retunes(self, rung: Rung) -> bool:
        """Whether forks that go on get a new rate: only where nothing is ever cloned and nothing shrinks."""
        return rung.clones == 0 and all(r.clones == 0 and r.forks == self.plan.first for r in self.plan.rungs)

    def _protected(self, history: History, best: Fork) -> Fork:
        """The fork that goes on in any case: the best at the first challenge, until one above it leads.

        A challenger at a lower rate may lead because it has begun to anneal; one at a higher rate leads although it has
        not. Clones are made of the best, so the parents of those made at a rung say who led there.
        """
        challenged = self.plan.challenges(history.goal.steps)
        parents = {
            (fork.start, fork.parent) for fork in history.forks if fork.parent is not None and fork.start in challenged
        }
        leaders = [*(history.fork(parent) for _, parent in sorted(parents)), best] if self.plan.protect else [best]
        winner = leaders[0]
        for leader in leaders[1:]:
            if leader.multiplier > winner.multiplier:
                winner = leader
        return winner if winner.alive else best


class _Round:
    """The proposals of one decision, as they are put together."""

    def __init__(
        self,
        history: History,
        start: int,
        stop: int,
        knowledge: Knowledge | None,
        strategy: Dynamic,
        outlook: Outlook | None = None,
    ) -> None:
        self.history, self.start, self.stop, self.knowledge, self.strategy = history, start, stop, knowledge, strategy
        self.outlook = outlook
        self.intervals: list[Interval] = []
        self.reasons: list[Reason] = []
        self.details: dict[str, Any] = {}
        self.fresh = max(fork.id for fork in history.forks) + 1

    def go_on(self, fork: Fork) -> None:
        """A fork keeps its rate."""
        self._propose(fork.id, None, fork, fork.multiplier)

    def retune(self, fork: Fork, alpha: float) -> None:
        """A fork goes on at a new rate."""
        self._go_on_at(fork, self._choose(fork, alpha))

    def reconsider(self, fork: Fork) -> None:
        """A last fork goes on, at the rate that the law expects to end best."""
        assert self.outlook is not None
        self._go_on_at(fork, self.outlook.going_on(fork, min(0.3, self.strategy.max_change)))

    def _go_on_at(self, fork: Fork, choice: Choice) -> None:
        self._propose(fork.id, None, fork, choice.rate, choice)
        self.reasons.append(because("new rate", fork=fork.id, rate=choice.rate, why=choice.reason))

    def clone(self, parent: Fork, alpha: float) -> None:
        """A new fork begins where `parent` stands, at a rate of its own."""
        choice = self._choose(parent, alpha)
        self._propose(self.fresh, parent.id, parent, choice.rate, choice)
        self.reasons.append(because("clone", fork=self.fresh, parent=parent.id, rate=choice.rate, why=choice.reason))
        self.fresh += 1

    def edge(self, best: Fork, kept: list[Fork], decades: float) -> None:
        """Look further out where the best is the lowest or the highest rate tried so far."""
        tried = np.array([fork.multiplier for fork in self.history.forks])
        side = int(best.multiplier >= tried.max() * (1 - 1e-9)) - int(best.multiplier <= tried.min() * (1 + 1e-9))
        bounds = self.history.goal.lr_range
        rate = float(np.clip(best.multiplier * 10.0 ** (side * decades), bounds.low, bounds.high))
        if side == 0 or abs(np.log10(rate / best.multiplier)) < 0.1 or len(kept) < 2:
            return
        lost = next(p for p in reversed(self.intervals) if p.fork != best.id)
        self.intervals.remove(lost)
        self._propose(self.fresh, best.id, best, rate)
        edge = "highest" if side > 0 else "lowest"
        self.reasons.append(because("edge", fork=best.id, clone=self.fresh, edge=edge, rate=rate))
        self.fresh += 1

    def decision(self, ranked: list[Fork], smooth: float) -> Decision:
        """All of it, with who is dropped."""
        going, heirs = {p.fork for p in self.intervals}, {p.parent: p.fork for p in self.intervals}
        behind = {fork.id: because("behind", value=fork.recent(smooth)) for fork in ranked if fork.id not in going}
        cloned = {number: because("cloned", clone=heirs[number]) for number in behind if number in heirs}
        drops = tuple({**behind, **cloned}.items())
        ranking = [{"fork": fork.id, "value": fork.recent(smooth)} for fork in ranked]
        self.details["ranking"] = ranking
        if self.knowledge is not None and self.knowledge.model is not None:
            self.details["forecast"] = forecasts(
                self.knowledge.model, self.history, self.intervals, weights=self.history.goal.objective.weights
            )
            now = [fork.recent() for fork in ranked]
            self.details["surface"] = surface(self.knowledge.model, self.knowledge.failures, now=now)
        if self.outlook is not None:
            self.details["forecast"] = forecasts(
                self.outlook.model, self.history, self.intervals, weights="raw", to_the_end=True
            )
        return Decision(
            tuple(self.intervals),
            drops,
            None,
            (because("ranking", step=self.start, ranking=ranking), *self.reasons),
            rounded(self.details),
        )

    def _choose(self, parent: Fork, alpha: float) -> Choice:
        assert self.knowledge is not None
        strategy = self.strategy
        others = [p.schedule.multipliers[-1] for p in self.intervals]
        choice = strategy.chooser.choose(self.knowledge, parent, self.stop, alpha, others, strategy.guards)
        untouched = sum(p.parent is None for p in self.intervals)
        if self.outlook is None or untouched < len(self.intervals):  # of several clones the first is the law's
            return choice
        return self.outlook.challenger(parent, choice, others, untouched, strategy.max_change)

    def _propose(self, fork: int, parent: int | None, past: Fork, rate: float, choice: Choice | None = None) -> None:
        schedule = past.schedule.extend(rate, self.stop)
        self.intervals.append(Interval(fork, parent, self.start, self.stop, schedule, self.history.round + 1))
        for name, value in (choice.details if choice else {}).items():
            self.details.setdefault(name, []).append({"fork": fork, **value})
