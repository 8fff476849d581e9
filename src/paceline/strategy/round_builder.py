"""One decision, put together fork by fork: the intervals to train, the forks to drop, and the reasons."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from paceline.strategy.base import Decision, Fork, History
from paceline.strategy.details import forecast_bands, latent_surface, round_floats
from paceline.strategy.final_forecast import FinalForecast, is_stable
from paceline.strategy.guards import Guard
from paceline.strategy.horizon_settings import HORIZON
from paceline.strategy.rate_choosers import FittedModels, RateChoice, RateChooser
from paceline.strategy.single_run import rate_correction
from paceline.study import Interval, Reason, because


class RoundBuilder:
    """Collects the intervals of one decision.

    Args:
        history: everything observed so far.
        start: the step at which the intervals begin.
        stop: the step at which they end.
        chooser: how forks get new rates.
        guards: which rates they may choose from.
        models: what the chooser has fitted; None if no rate is chosen.
        forecast: the forecast of final values, if it is used.
        max_change: largest change of a rate, in decades, that the forecast may choose.
    """

    def __init__(
        self,
        history: History,
        *,
        start: int,
        stop: int,
        chooser: RateChooser,
        guards: Sequence[Guard] = (),
        models: FittedModels | None = None,
        forecast: FinalForecast | None = None,
        max_change: float = HORIZON.max_change,
    ) -> None:
        self.history, self.start, self.stop = history, start, stop
        self.chooser, self.guards, self.models = chooser, guards, models
        self._models_now = models  # with what is expected of the rates that were chosen in this decision
        self.forecast, self.max_change = forecast, max_change
        self.intervals: list[Interval] = []
        self.reasons: list[Reason] = []
        self.details: dict[str, Any] = {}
        self._next_fork = max(fork.id for fork in history.forks) + 1

    def keep(self, fork: Fork) -> None:
        """A fork goes on at its rate."""
        self._add(fork, fork.multiplier)

    def keep_at_new_rate(self, fork: Fork, alpha: float) -> None:
        """A fork goes on at a rate that the chooser picks."""
        self._keep_at(fork, self._choose(fork, alpha))

    def keep_at_corrected_rate(self, fork: Fork) -> None:
        """A fork goes on at a rate that is corrected by its noise and its progress."""
        goal, step = self.history.goal, int(fork.schedule.change_points[-1])
        if fork.trace is None:
            self.keep(fork)
            return
        steps, values = fork.trace.path()
        last_losses = {weights: -goal.objective.sign * value for weights, value in fork.last_values.items()}
        losses, least = -goal.objective.sign * values, HORIZON.min_correction
        correction = rate_correction(steps, losses, last_losses, step, goal.steps, least=least)
        if not correction.decades:
            self.keep(fork)
            return
        rate = fork.multiplier * 10.0**correction.decades
        self._keep_at(fork, RateChoice(self._limited(fork, rate), correction.reason))

    def _limited(self, fork: Fork, rate: float) -> float:
        """The rate within the bounds, and not above all rates that forks have trained at for some time."""
        goal = self.history.goal
        lasting = [other.multiplier for other in self.history.forks if is_stable(other, goal.steps)]
        high = min(goal.lr_range.high, max([fork.multiplier, *lasting]))
        return float(np.clip(rate, goal.lr_range.low, high))

    def _keep_at(self, fork: Fork, choice: RateChoice) -> None:
        self._add(fork, choice.rate, choice)
        self.reasons.append(because("new rate", fork=fork.id, rate=choice.rate, why=choice.reason))

    def clone(self, parent: Fork, alpha: float) -> None:
        """A clone of a fork begins, at a rate of its own."""
        choice = self._choose(parent, alpha)
        clone = self._add_clone(parent, choice.rate, choice)
        self.reasons.append(because("clone", fork=clone, parent=parent.id, rate=choice.rate, why=choice.reason))

    def explore_edge(self, best: Fork, decades: float) -> None:
        """Replace the worst survivor by a clone of the best further out, if the best runs at an edge of the rates."""
        tried = np.array([fork.multiplier for fork in self.history.forks])
        is_highest = best.multiplier >= tried.max() * (1 - 1e-9)
        is_lowest = best.multiplier <= tried.min() * (1 + 1e-9)
        side = int(is_highest) - int(is_lowest)
        bounds = self.history.goal.lr_range
        rate = float(np.clip(best.multiplier * 10.0 ** (side * decades), bounds.low, bounds.high))
        has_room = abs(np.log10(rate / best.multiplier)) >= HORIZON.min_edge_decades
        if side == 0 or not has_room or len(self.intervals) < 2:
            return
        worst = next(interval for interval in reversed(self.intervals) if interval.fork != best.id)
        self.intervals.remove(worst)
        clone = self._add_clone(best, rate)
        edge = "highest" if side > 0 else "lowest"
        self.reasons.append(because("edge", fork=best.id, clone=clone, edge=edge, rate=rate))

    def decision(self, ranked: Sequence[Fork], smoothing_share: float) -> Decision:
        """The decision: what was collected, and drops of all other forks.

        Args:
            ranked: the living forks, best first.
            smoothing_share: share of its latest observations that a fork's value is the mean of.
        """
        ranking = [{"fork": fork.id, "value": fork.recent(smoothing_share)} for fork in ranked]
        reasons = (because("ranking", step=self.start, ranking=ranking), *self.reasons)
        details = round_floats({**self.details, "ranking": ranking, **self._model_details(ranked)})
        return Decision(tuple(self.intervals), self._drops(ranked, smoothing_share), None, reasons, details)

    def _drops(self, ranked: Sequence[Fork], smoothing_share: float) -> tuple[tuple[int, Reason], ...]:
        """Forks that do not go on, with the reason. A fork whose clone goes on is not behind."""
        goes_on = {interval.fork for interval in self.intervals}
        clones = {interval.parent: interval.fork for interval in self.intervals}
        return tuple(
            (
                fork.id,
                because("cloned", clone=clones[fork.id])
                if fork.id in clones
                else because("behind", value=fork.recent(smoothing_share)),
            )
            for fork in ranked
            if fork.id not in goes_on
        )

    def _model_details(self, ranked: Sequence[Fork]) -> dict[str, Any]:
        """What views show of the models: forecasts, and the surface of the latent functions."""
        details: dict[str, Any] = {}
        model = None if self.models is None else self.models.model
        if self.models is not None and model is not None:
            weights = self.history.goal.objective.weights
            details["forecast"] = forecast_bands(model, self.history, self.intervals, weights=weights)
            now = [fork.recent() for fork in ranked]
            details["surface"] = latent_surface(model, self.models.failures, now=now)
        if self.forecast is not None:
            details["forecast"] = forecast_bands(
                self.forecast.model, self.history, self.intervals, weights="raw", to_the_end=True
            )
        return details

    def _choose(self, parent: Fork, alpha: float) -> RateChoice:
        """The chooser's rate. For the first clone, the forecast may overrule it."""
        assert self._models_now is not None
        other_rates = [interval.multiplier for interval in self.intervals]
        choice = self.chooser.choose(self._models_now, parent, self.stop, alpha, other_rates, self.guards)
        unchanged = sum(interval.parent is None for interval in self.intervals)
        if self.forecast is not None and unchanged == len(self.intervals):
            choice = self.forecast.choose_for_clone(parent, choice, other_rates, unchanged, self.max_change)
        self._models_now = self.chooser.models_after(self._models_now, parent, self.stop, choice.rate)
        return choice

    def _add_clone(self, parent: Fork, rate: float, choice: RateChoice | None = None) -> int:
        """Add the interval of a new clone; its number."""
        clone = self._next_fork
        self._next_fork += 1
        self._add(parent, rate, choice, clone)
        return clone

    def _add(self, fork: Fork, rate: float, choice: RateChoice | None = None, clone: int | None = None) -> None:
        """Add the interval of a fork, or of a clone of it."""
        schedule = fork.schedule.extend(rate, self.stop)
        number, parent = (fork.id, None) if clone is None else (clone, fork.id)
        self.intervals.append(Interval(number, parent, self.start, self.stop, schedule, self.history.round + 1))
        for name, value in (choice.details if choice else {}).items():
            self.details.setdefault(name, []).append({"fork": number, **value})
