"""Tuning one run on the fly: forks of the run try several rates, and the best go on (paper, section 3).

There are three presets. `paper` is the paper's Algorithm 1 as printed. `greedy` is our version of it: the rates of a
decision differ, and the model knows that values are noisy. `horizon` is our default: it tunes a multiplier of a base
that decays to zero, and judges forks by the loss of averaged weights. A fork that lowers its rate always looks better
at once, whether or not it ends better; averaged weights remove most of that effect (docs/design.md).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.model import Link
from paceline.shapes import HOLD_THEN_DECAY, Constant, Shape
from paceline.strategy.base import Decision, Fork, Goal, History, Strategy
from paceline.strategy.final_forecast import FinalForecast
from paceline.strategy.fork_plan import (
    ForkPlan,
    Rung,
    greedy_plan,
    horizon_plan,
    keep_each_plan,
    side_by_side_plan,
)
from paceline.strategy.guards import FailureGuard, Guard, MaxChange, MinSeparation
from paceline.strategy.horizon_settings import FINAL_FORECAST, HORIZON
from paceline.strategy.rate_choosers import FixedFactor, ModelQuantile, RateChooser
from paceline.strategy.rollback import with_rollback
from paceline.strategy.round_builder import RoundBuilder
from paceline.study import Interval, Reason, because
from paceline.traces import LearningRateRange, Objective, Schedule, Transform, Weights

ALPHA_OF_ONE_FORK = 0.75  # order of the quantile that one fork maximises; the paper also suggests 0.5
GREEDY_SEPARATION = 0.2  # decades between the rates of a decision of `greedy`
GREEDY_ALPHAS = (ALPHA_OF_ONE_FORK,)  # orders of its quantiles: choices in sequence differ without further ones
SETTINGS = (
    "alphas",
    "weights",
    "transform",
    "smoothing_share",
    "initial_rates",
    "centred_grid",
    "judge_by",
    "max_change",
)


@dataclass(frozen=True, slots=True)
class Dynamic(Strategy):
    """Forks of one run, compared and given new rates at the rungs of a plan.

    Args:
        plan: how many forks live when.
        base: the shape whose multiplier is tuned; constant tunes the rate itself.
        chooser: how a fork gets its next rate.
        guards: which rates it may choose from.
        alphas: orders of the quantiles that clones maximise, in turn.
        weights: whose value is used, "raw" or "averaged".
        transform: on which scale the value is modelled.
        smoothing_share: a fork's value is the mean over this share of its latest observations; 0 takes the last one.
        initial_rates: the rates of the first forks; by default a grid.
        centred_grid: whether that grid has its points in the middles of equal parts of the bounds, or from bound to
            bound.
        judge_by: "now" judges forks by their latest values. "final" lets a forecast of their final values overrule
            that.
        max_change: largest change of a rate, in decades, that the forecast may choose.
        corrects_rates: whether forks that go on have their rates corrected by their noise and progress, over the share
            of the run in which that says something.
    """

    plan: ForkPlan
    base: Shape
    chooser: RateChooser
    guards: tuple[Guard, ...]
    alphas: tuple[float, ...]
    weights: Weights = "averaged"
    transform: Transform = "log"
    smoothing_share: float = 0.0
    initial_rates: tuple[float, ...] = ()
    centred_grid: bool = True
    judge_by: str = "now"
    max_change: float = HORIZON.max_change
    corrects_rates: bool = False

    def __post_init__(self) -> None:
        if self.initial_rates and len(self.initial_rates) != self.plan.initial_forks:
            raise InputError(
                f"initial_rates must name {self.plan.initial_forks} rates, one per fork, got {len(self.initial_rates)}"
            )
        if not self.alphas or not all(0 < alpha < 1 for alpha in self.alphas):
            raise InputError(f"alphas must be quantile orders in (0, 1), got {self.alphas}")
        if self.judge_by not in ("now", "final"):
            raise InputError(
                f'judge_by must be "now" or "final", got {self.judge_by!r}: judge forks by their latest values, or by '
                "the forecast of their final ones"
            )

    @classmethod
    def paper(
        cls,
        *,
        forks: int = 5,
        intervals: int = 20,
        keep_each: bool = False,
        alphas: Sequence[float] = (),
        link: "str | Link" = "linear",
        order: int = 1,
        initial_rates: Sequence[float] = (),
    ) -> "Dynamic":
        """The paper's Algorithm 1 as printed, with its model and without our additions to it (docs/design.md).

        Args:
            forks: how many live at any time.
            intervals: how often the rate is chosen, the first time included.
            keep_each: whether every run goes on with a new rate, in place of clones of the best.
            alphas: orders of the quantiles, for one fork after the other. By default 1/2Q, 3/2Q, ..., 1 - 1/2Q for Q
                forks. For one fork that would be 0.5, which is neutral; the default is 0.75, which explores, as the
                paper suggests.
            link: the link of the trace model; your own after `paceline.model.register_link(YourLink)`.
            order: how many intervals the next one depends on.
            initial_rates: the rates of the first forks; by default a grid from bound to bound.
        """
        return cls.greedy(
            forks=forks,
            intervals=intervals,
            keep_each=keep_each,
            min_separation=0.0,
            in_sequence=False,
            alphas=alphas or paper_alphas(forks),
            link=link,
            order=order,
            random_effect=False,
            anchor_noise=False,
            initial_rates=initial_rates,
        )

    @classmethod
    def greedy(
        cls,
        *,
        forks: int = 5,
        intervals: int = 20,
        keep_each: bool = False,
        max_change: float = 1.0,
        min_separation: float = GREEDY_SEPARATION,
        in_sequence: bool = True,
        alphas: Sequence[float] = (),
        link: "str | Link" = "linear",
        order: int = 1,
        random_effect: bool = True,
        anchor_noise: bool = True,
        initial_rates: Sequence[float] = (),
    ) -> "Dynamic":
        """Our version of Algorithm 1: the rates of a decision are chosen one after the other, and differ.

        Args:
            forks: how many live at any time.
            intervals: how often the rate is chosen, the first time included.
            keep_each: whether every run goes on with a new rate, in place of clones of the best.
            max_change: largest change of a rate, in decades.
            min_separation: smallest gap between the rates of one decision, in decades; 0 for none.
            in_sequence: whether each rate is chosen as if those before it had gone as expected.
            alphas: orders of the quantiles, for one fork after the other, again from the first if there are fewer.
            link: the link of the trace model; your own after `paceline.model.register_link(YourLink)`.
            order: how many intervals the next one depends on.
            random_effect: whether intervals may differ beyond their inputs.
            anchor_noise: whether the first value of an interval is noisy too.
            initial_rates: the rates of the first forks; by default a grid from bound to bound.
        """
        plan = keep_each_plan(forks, intervals) if keep_each else greedy_plan(forks, intervals)
        apart = (MinSeparation(min_separation),) if min_separation else ()
        return cls(
            plan=plan,
            base=Constant(),
            chooser=ModelQuantile(
                link=link, order=order, anchor_noise=anchor_noise, random_effect=random_effect, in_sequence=in_sequence
            ),
            guards=(MaxChange(max_change), *apart, FailureGuard()),
            alphas=tuple(alphas) or GREEDY_ALPHAS,
            weights="raw",
            transform="identity",
            initial_rates=tuple(initial_rates),
            centred_grid=False,
        )

    @classmethod
    def horizon(
        cls,
        *,
        cost: float = 2.3,
        forks: int | None = None,
        base: Shape | None = None,
        judge_by: str | None = None,
        max_change: float = HORIZON.max_change,
        initial_rates: Sequence[float] = (),
    ) -> "Dynamic":
        """Our default: reduce the forks quickly, then let clones at other rates challenge the best one.

        Args:
            cost: what all forks may cost together, in runs.
            forks: in place of a cost, a number of forks that live to the end, for devices that would be idle otherwise.
            base: the shape whose multiplier is tuned; by default it holds and then decays to zero.
            judge_by: "now" or "final". By default "final" at cost 4 and above, where enough forks go on to correct a
                wrong forecast. A decision by the forecast takes a second or two.
            max_change: largest change of a rate, in decades, that the forecast may choose.
            initial_rates: the rates of the first forks; by default a grid.
        """
        if forks is not None and forks < 1:
            raise InputError(f"forks must be at least 1, got {forks}")
        plan = horizon_plan(cost) if forks is None else side_by_side_plan(forks)
        is_wide = forks is None and cost >= HORIZON.early_clones_from_cost
        return cls(
            plan=plan,
            base=HOLD_THEN_DECAY if base is None else base,
            chooser=FixedFactor(),
            guards=(MaxChange(max_change), MinSeparation(), FailureGuard()),  # for choosers that use a model
            alphas=HORIZON.alphas,
            smoothing_share=HORIZON.smoothing_share,
            initial_rates=tuple(initial_rates),
            judge_by=judge_by or ("final" if is_wide else "now"),
            max_change=max_change,
            corrects_rates=forks is None and not is_wide,
        )

    def objective(self, objective: Objective) -> Objective:
        """The user's objective, of the weights and on the scale that this strategy uses."""
        return Objective(objective.mode, self.transform, self.weights)

    def total_steps(self, goal: Goal) -> int:
        """The plan's cost in steps. A single run may repeat one interval that failed."""
        plan = self.plan.for_steps(goal.steps)
        steps = plan.total_steps(goal.steps)
        return steps + plan.longest_interval(goal.steps) if steps == goal.steps else steps

    def planned_intervals(self, goal: Goal) -> list[tuple[int, int, int]]:
        """Those of the plan."""
        return self.plan.for_steps(goal.steps).intervals(goal.steps)

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        return {
            "strategy": "dynamic",
            "plan": asdict(self.plan),
            "base": self.base.to_json(),
            "chooser": self.chooser.to_json(),
            "guards": [{"name": guard.name, **asdict(guard)} for guard in self.guards],  # pyright: ignore[reportArgumentType]
            **{name: getattr(self, name) for name in SETTINGS},
            **({"corrects_rates": True} if self.corrects_rates else {}),
        }

    def as_begun(self, settings: dict[str, Any]) -> Strategy:
        """A study that 0.1.0 began with the defaults of `greedy` goes on with these."""
        former = self._as_of_0_1_0()
        return former if json.loads(json.dumps(former.to_json())) == settings else self

    def _as_of_0_1_0(self) -> "Dynamic":
        """With the defaults that `greedy` had in 0.1.0, in place of those that it has now."""
        apart, chooser = MinSeparation(GREEDY_SEPARATION), self.chooser
        has_defaults = apart in self.guards and self.alphas == GREEDY_ALPHAS
        if not (has_defaults and isinstance(chooser, ModelQuantile) and chooser.in_sequence):
            return self
        return replace(
            self,
            chooser=replace(chooser, in_sequence=False),
            guards=tuple(guard for guard in self.guards if guard != apart),
            alphas=paper_alphas(self.plan.initial_forks),
        )

    def propose(self, history: History) -> Decision:
        """The next decision; if every fork has failed, a way back."""
        return with_rollback(history, self.total_steps(history.goal), self._decide)

    def _decide(self, history: History) -> Decision:
        """Start, decide at a rung, or end."""
        if not history.forks:
            return self._start(history.goal)
        plan = self.plan.for_steps(history.goal.steps)
        change_points = plan.change_points(history.goal.steps)
        if history.round >= len(change_points) - 1:
            best = max(history.alive, key=lambda fork: (history.goal.objective.sign * fork.final_value, -fork.id))
            return Decision(winner=best.id, reasons=(because("ended best", fork=best.id, value=best.final_value),))
        return self._decide_at_rung(history, plan.rungs[history.round - 1], change_points)

    def _start(self, goal: Goal) -> Decision:
        """The first forks."""
        stop = self.plan.for_steps(goal.steps).change_points(goal.steps)[1]
        rates = self._first_rates(goal.lr_range)
        intervals = tuple(
            Interval(i, None, 0, stop, Schedule([rate], [0, stop], goal.steps, self.base), 1)
            for i, rate in enumerate(rates)
        )
        return Decision(intervals, reasons=(because("start", rates=rates.tolist()),))

    def _first_rates(self, bounds: LearningRateRange) -> np.ndarray:
        """The user's own rates, or a grid."""
        count = self.plan.initial_forks
        if self.initial_rates:
            rates = np.array(self.initial_rates)
            if rates.min() < bounds.low * (1 - 1e-9) or rates.max() > bounds.high * (1 + 1e-9):
                raise InputError(
                    f"initial_rates must lie within the bounds {bounds.low:g} to {bounds.high:g}, got "
                    f"{self.initial_rates}"
                )
            return rates
        if self.centred_grid or count == 1:
            return bounds.from_unit((np.arange(count) + 0.5) / count)
        return bounds.from_unit(np.linspace(0.0, 1.0, count))

    def _decide_at_rung(self, history: History, rung: Rung, change_points: list[int]) -> Decision:
        """Which forks go on, which are dropped, and which clones of the best begin."""
        ranked, forecast, contradiction = self._rank(history, rung)
        best = ranked[0]
        protected = self._protected(history, best)
        kept = [protected, *(fork for fork in ranked if fork.id != protected.id)][: rung.forks - rung.clones]
        clones = rung.forks - len(kept) if rung.clones else 0  # clones also take the places of forks that failed
        changes_rates, corrects_rates = self._changes_rates(rung), self._corrects_rates(rung)
        models = self.chooser.fit(history, change_points) if clones or changes_rates else None
        builder = RoundBuilder(
            history,
            start=change_points[history.round],
            stop=change_points[history.round + 1],
            chooser=self.chooser,
            guards=self.guards,
            models=models,
            forecast=forecast,
            max_change=self.max_change,
        )
        if contradiction is not None:
            builder.reasons.append(contradiction)
        for i, fork in enumerate(kept):
            if changes_rates:
                builder.keep_at_new_rate(fork, self.alphas[i % len(self.alphas)])
            elif corrects_rates:
                builder.keep_at_corrected_rate(fork)
            else:
                builder.keep(fork)
        if not clones and rung.forks > 1 and self.plan.edge_decades and not (changes_rates or corrects_rates):
            builder.explore_edge(best, self.plan.edge_decades)
        for i in range(clones):
            builder.clone(best, self.alphas[i % len(self.alphas)])
        return builder.decision(ranked, self.smoothing_share)

    def _rank(self, history: History, rung: Rung) -> tuple[list[Fork], FinalForecast | None, Reason | None]:
        """The living forks, best first; the forecast, if it is used; and the reason, if it contradicts the values."""
        ranked = history.ranked(self.smoothing_share)
        is_used = self.judge_by == "final" and rung.share >= FINAL_FORECAST.from_share
        forecast = self._fit_final_forecast(history) if is_used else None
        if forecast is None:
            return ranked, None, None
        contradiction = forecast.contradiction(ranked[0], self.smoothing_share)
        if contradiction is not None:
            return ranked, None, contradiction
        kept = rung.forks - rung.clones
        return forecast.promote_best(ranked, min(1, kept - 1)), forecast, None  # the second place, if there is one

    def _fit_final_forecast(self, history: History) -> FinalForecast | None:
        return FinalForecast.fit(history)

    def _changes_rates(self, rung: Rung) -> bool:
        """Whether forks that go on get new rates: only if the plan never clones and never reduces the forks."""
        return rung.clones == 0 and all(r.clones == 0 and r.forks == self.plan.initial_forks for r in self.plan.rungs)

    def _corrects_rates(self, rung: Rung) -> bool:
        """Whether forks that go on have their rates corrected: before, they are compared; later, the base anneals."""
        first, last = HORIZON.first_correction_share, HORIZON.correction_shares[-1]
        return self.corrects_rates and first <= rung.share <= last

    def _protected(self, history: History, best: Fork) -> Fork:
        """The fork that goes on in any case: the best at the first challenge, until a leader with a higher rate.

        A challenger at a lower rate may lead only because it has begun to anneal. One at a higher rate has not, and
        leads all the same. Clones are always made of the best fork, so the parents of a rung's clones say who led
        there.
        """
        challenges = self.plan.for_steps(history.goal.steps).challenge_steps(history.goal.steps)
        parents = {
            (fork.start, fork.parent) for fork in history.forks if fork.parent is not None and fork.start in challenges
        }
        earlier = [history.fork(parent) for _, parent in sorted(parents)] if self.plan.protect_leader else []
        leaders = [*earlier, best]
        protected = leaders[0]
        for leader in leaders[1:]:
            if leader.multiplier > protected.multiplier:
                protected = leader
        return protected if protected.alive else best


def paper_alphas(forks: int) -> tuple[float, ...]:
    """The orders of the quantiles that the paper's forks maximise.

    >>> paper_alphas(2)
    (0.25, 0.75)
    """
    # alpha_i = (2 i - 1) / 2 Q  (paper, section 3.1)
    return (ALPHA_OF_ONE_FORK,) if forks == 1 else tuple((2 * i + 1) / (2 * forks) for i in range(forks))
