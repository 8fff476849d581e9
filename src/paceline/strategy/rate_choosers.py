"""How a fork gets its next rate: the one question that a strategy with forks asks.

`FixedFactor` goes a fixed factor up or down. `ModelQuantile` takes the rate with the best forecast for the next
decision, among the candidates that the guards allow. `FixedFactor` needs no guards: its factor is within any sensible
limit, and it avoids the rates of other forks itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from paceline.errors import FitError, InputError
from paceline.model import FailureModel, Link, TraceModel, registered_name
from paceline.strategy.base import Fork, Goal, History
from paceline.strategy.guards import FailureGuard, Guard, GuardContext, allowed_candidates, failure_probability
from paceline.strategy.horizon_settings import HORIZON
from paceline.study import Reason, because
from paceline.traces import ClockName

CANDIDATES = 121  # rates on the grid over the bounds
LATER_SETTINGS = {"anchor_noise": True, "random_effect": True, "in_sequence": False}  # what 0.1.0 did


@dataclass(frozen=True, slots=True, eq=False)
class RateChoice:
    """A rate, the reason for it, and what a view needs to show it."""

    rate: float
    reason: Reason
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, eq=False)
class FittedModels:
    """The models of one decision: all its rates are chosen with the same ones.

    Args:
        history: what they were fitted to.
        model: the trace model, None if none is needed or there is too little to learn from.
        failures: the failure classifier, None if nothing has failed.
    """

    history: History
    model: TraceModel | None = None
    failures: FailureModel | None = None


class RateChooser(ABC):
    """How a fork gets its next rate."""

    name: ClassVar[str]

    @abstractmethod
    def fit(self, history: History, change_points: Sequence[int]) -> FittedModels:
        """Fit the models that the choices of one decision need."""

    @abstractmethod
    def choose(
        self,
        models: FittedModels,
        parent: Fork,
        stop: int,
        alpha: float,
        other_rates: Sequence[float],
        guards: Sequence[Guard],
    ) -> RateChoice:
        """The rate for the next interval.

        Args:
            models: what `fit` returned.
            parent: the fork that goes on at this rate, or is cloned.
            stop: the step at which the interval ends.
            alpha: order of the quantile to maximise.
            other_rates: rates of other forks in the same interval.
            guards: which rates may be chosen, the most important guard first.
        """

    def models_after(self, models: FittedModels, parent: Fork, stop: int, rate: float) -> FittedModels:
        """The models for the next choices of the same decision, after `rate` was chosen; the same ones by default."""
        return models

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data."""
        return {"name": self.name, **asdict(self)}  # pyright: ignore[reportArgumentType]


def candidate_rates(goal: Goal, parent: Fork) -> Float[np.ndarray, "candidates"]:
    """A grid over the bounds, even on a log scale, and the parent's own rate."""
    grid = goal.lr_range.from_unit(np.linspace(0.0, 1.0, CANDIDATES))
    return np.unique(np.append(grid, parent.multiplier))


@dataclass(frozen=True, slots=True)
class FixedFactor(RateChooser):
    """A fixed factor up or down.

    Down at first. Then on in the direction that won, or back if it lost. Down in the last interval, where only the tail
    is left.

    Args:
        factor: the factor between two rates, above 1.
    """

    name: ClassVar[str] = "fixed factor"
    factor: float = HORIZON.factor

    def __post_init__(self) -> None:
        if self.factor <= 1:
            raise InputError(f"factor must be above 1, got {self.factor}: a clone needs a rate of its own")

    def fit(self, history: History, change_points: Sequence[int]) -> FittedModels:
        """No model is needed."""
        return FittedModels(history)

    def choose(
        self,
        models: FittedModels,
        parent: Fork,
        stop: int,
        alpha: float,
        other_rates: Sequence[float],
        guards: Sequence[Guard],
    ) -> RateChoice:
        """The nearest rate that no other fork runs at, on the promising side first."""
        goal = models.history.goal
        bounds, side = goal.lr_range, -1 if stop == goal.steps else self._direction(models.history, parent)
        powers = np.array([side, -side, 2 * side, -2 * side])
        rates = np.clip(parent.multiplier * self.factor**powers, bounds.low, bounds.high)
        taken = np.array([*other_rates, parent.multiplier])
        free = [rate for rate in rates if np.abs(np.log10(rate / taken)).min() > HORIZON.min_gap]
        rate = float(free[0] if free else rates[0])
        return RateChoice(rate, because("factor", factor=rate / parent.multiplier, fork=parent.id))

    def _direction(self, history: History, parent: Fork) -> int:
        """1 for up, -1 for down: away from its last challenger, which lost, or on in its own direction."""
        challengers = [fork for fork in history.forks if fork.parent == parent.id]
        if challengers:
            return 1 if challengers[-1].multiplier < parent.multiplier else -1
        if parent.parent is not None:
            return 1 if parent.multiplier > history.fork(parent.parent).multiplier else -1
        return -1


@dataclass(frozen=True, slots=True)
class ModelQuantile(RateChooser):
    """The candidate whose forecast for the next decision has the best alpha-quantile (paper, eq. ucbargmaxpart).

    Args:
        link: the link of the trace model: a name, or an instance of a registered class, of which the name is kept.
        order: how many intervals the next one depends on.
        clock: how time is measured inside an interval.
        inducing: the most inducing points.
        anchor_noise: as in `TraceModel.fit`.
        random_effect: likewise.
        in_sequence: whether each choice of a decision assumes that those before it had their median outcome.
    """

    name: ClassVar[str] = "model quantile"
    link: "str | Link" = "linear"
    order: int = 1
    clock: ClockName = "step"
    inducing: int = 100
    anchor_noise: bool = True
    random_effect: bool = True
    in_sequence: bool = False

    def __post_init__(self) -> None:  # `fit` would take a refusal of these for a lack of data
        object.__setattr__(self, "link", registered_name(self.link))
        if self.order not in (1, 2, 3) or self.inducing < 1:
            raise InputError(f"expected order 1, 2 or 3 and inducing above 0, got {self.order} and {self.inducing}")

    def fit(self, history: History, change_points: Sequence[int]) -> FittedModels:
        """Fit the trace model, and the failure classifier if anything has failed."""
        traces = history.traces()
        lowest = np.nanmin(np.concatenate([trace.values for trace in traces]))
        if history.goal.objective.transform == "log" and lowest <= 0:  # no logarithm
            plain = replace(history.goal.objective, transform="identity")
            traces = [replace(trace, objective=plain) for trace in traces]
        try:
            model = TraceModel.fit(
                traces,
                intervals=change_points,
                clock=self.clock,
                link=self.link,
                order=self.order,
                inducing=self.inducing,
                lr=history.goal.lr_range,
                anchor_noise=self.anchor_noise,
                random_effect=self.random_effect,
            )
        except (InputError, FitError):  # nothing to learn from yet: every run failed at once
            return FittedModels(history)
        return FittedModels(history, model, model.fit_failures() if model.failed().any() else None)

    def choose(
        self,
        models: FittedModels,
        parent: Fork,
        stop: int,
        alpha: float,
        other_rates: Sequence[float],
        guards: Sequence[Guard],
    ) -> RateChoice:
        """Maximise the quantile over the allowed candidates."""
        if models.model is None or parent.trace is None:
            instead = FixedFactor().choose(models, parent, stop, alpha, other_rates, guards)
            return replace(instead, reason=because("no model", instead=instead.reason))
        goal, value = models.history.goal, parent.recent()
        rates = candidate_rates(goal, parent)
        context = GuardContext(parent.multiplier, value, tuple(other_rates), alpha, models.model, models.failures)
        allowed, risk = allowed_candidates(rates, context, guards), failure_probability(rates, context)
        quantile = models.model.quantile(alpha, rates, start=parent.trace, stop=stop)
        score = np.where(allowed, goal.objective.sign * quantile, -np.inf)
        best = int(np.argmax(score))
        details: dict[str, Any] = {
            "candidates": {"rates": rates, "quantile": quantile, "alpha": alpha, "admitted": allowed}
        }
        if models.failures is not None:
            details["p_fail"] = {"rates": rates, "probability": risk}
        reason = because("best quantile", alpha=alpha, step=stop, value=quantile[best], candidates=int(allowed.sum()))
        if risk[best] >= alpha and any(isinstance(guard, FailureGuard) for guard in guards):
            reason = because("least risky", probability=risk[best], limit=alpha, step=stop, value=quantile[best])
        return RateChoice(float(rates[best]), reason, details)

    def to_json(self) -> dict[str, Any]:
        """Settings as plain data, without those that came later and are as they were before."""
        settings = RateChooser.to_json(self)
        return {name: value for name, value in settings.items() if LATER_SETTINGS.get(name) is not value}

    def models_after(self, models: FittedModels, parent: Fork, stop: int, rate: float) -> FittedModels:
        """In sequence: the trace model is conditioned on the median outcome of this rate."""
        if not self.in_sequence or models.model is None or parent.trace is None:
            return models
        return replace(models, model=models.model.with_median_outcome(rate, start=parent.trace, stop=stop))
