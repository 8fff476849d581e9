"""The one question a dynamic strategy asks: at which rate should a clone of this fork run next?

Answered blindly (a fixed factor up or down) or by the trace model (the rate whose forecast at the next decision has the
best alpha-quantile, among the candidates that the guards admit). A fixed factor is within any sensible guard, and the
blind answer leaves out rates that others run at by itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from paceline.errors import FitError, InputError
from paceline.model import FailureModel, TraceModel, link_of
from paceline.strategy.base import Fork, Goal, History
from paceline.strategy.guards import Guard, Situation
from paceline.study import Reason, because
from paceline.traces import ClockName

CANDIDATES = 121


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A rate, why, and what a view needs to show it."""

    rate: float
    reason: Reason
    details: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What is known when rates are chosen: the models of one decision, fitted once."""

    history: History
    model: TraceModel | None
    failures: FailureModel | None


class Chooser(ABC):
    """How a clone gets its rate."""

    name: ClassVar[str]

    @abstractmethod
    def learn(self, history: History, borders: Sequence[int]) -> Knowledge:
        """Fit what the choices of one decision need."""

    @abstractmethod
    def choose(
        self,
        knowledge: Knowledge,
        parent: Fork,
        stop: int,
        alpha: float,
        others: Sequence[float],
        guards: Sequence[Guard],
    ) -> Choice:
        """The rate of a clone of `parent` up to step `stop`, given the rates that other forks run at."""


def candidates(goal: Goal, parent: Fork) -> Float[np.ndarray, "candidates"]:
    """A grid over the bounds, even in log space, and the parent's own rate."""
    grid = goal.lr_range.from_unit(np.linspace(0.0, 1.0, CANDIDATES))
    return np.unique(np.append(grid, parent.multiplier))


def admitted(rates: Float[np.ndarray, "n"], situation: Situation, guards: Sequence[Guard]) -> np.ndarray:
    """Which candidates every guard lets pass; where none is left, guards are lifted from the last one on."""
    for count in range(len(guards), 0, -1):
        passed = np.all([guard.admits(rates, situation) for guard in guards[:count]], axis=0)
        if passed.any():
            return passed
    return np.ones(len(rates), dtype=bool)


@dataclass(frozen=True, slots=True)
class Blind(Chooser):
    """A fixed factor, down at first and at last; between, on in the direction that won and back where it lost."""

    name: ClassVar[str] = "blind"
    factor: float = 1.6

    def __post_init__(self) -> None:
        if self.factor <= 1:
            raise InputError(f"factor must be above 1, got {self.factor}: a clone needs a rate of its own")

    def learn(self, history: History, borders: Sequence[int]) -> Knowledge:
        """Nothing to learn."""
        return Knowledge(history, None, None)

    def choose(
        self,
        knowledge: Knowledge,
        parent: Fork,
        stop: int,
        alpha: float,
        others: Sequence[float],
        guards: Sequence[Guard],
    ) -> Choice:
        """The nearest rate that nobody runs at, on the promising side first."""
        goal = knowledge.history.goal
        bounds, side = goal.lr_range, -1 if stop == goal.steps else self._side(knowledge.history, parent)
        powers = np.array([side, -side, 2 * side, -2 * side])
        rates = np.clip(parent.multiplier * self.factor**powers, bounds.low, bounds.high)
        taken = np.array([*others, parent.multiplier])
        free = [rate for rate in rates if np.abs(np.log10(rate / taken)).min() > 0.05]
        rate = float(free[0] if free else rates[0])
        return Choice(rate, because("factor", factor=rate / parent.multiplier, fork=parent.id))

    def _side(self, history: History, parent: Fork) -> int:
        """1 for up, -1 for down: away from its last challenger, which lost; or on in its own direction."""
        challengers = [fork for fork in history.forks if fork.parent == parent.id]
        if challengers:
            return 1 if challengers[-1].multiplier < parent.multiplier else -1
        if parent.parent is not None:
            return 1 if parent.multiplier > history.fork(parent.parent).multiplier else -1
        return -1


@dataclass(frozen=True, slots=True)
class ByModel(Chooser):
    """The candidate whose forecast at the next decision has the best alpha-quantile (paper, eq. ucbargmaxpart)."""

    name: ClassVar[str] = "model"
    link: str = "linear"
    order: int = 1
    clock: ClockName = "step"
    inducing: int = 100

    def __post_init__(self) -> None:  # a fit that is refused later is taken for one with too little to learn from
        link_of(self.link)
        if self.order not in (1, 2, 3) or self.inducing < 1:
            raise InputError(f"expected order 1, 2 or 3 and inducing above 0, got {self.order} and {self.inducing}")

    def learn(self, history: History, borders: Sequence[int]) -> Knowledge:
        """Fit the trace model, and the failure classifier where something has failed."""
        traces = history.traces()
        lowest = np.nanmin(np.concatenate([trace.values for trace in traces]))
        if history.goal.objective.transform == "log" and lowest <= 0:
            # a loss that is not positive has no logarithm
            plain = replace(history.goal.objective, transform="identity")
            traces = [replace(trace, objective=plain) for trace in traces]
        try:
            model = TraceModel.fit(
                traces,
                intervals=borders,
                clock=self.clock,
                link=self.link,
                order=self.order,
                inducing=self.inducing,
                lr=history.goal.lr_range,
            )
        except (InputError, FitError):
            return Knowledge(history, None, None)  # nothing to learn from yet: every run failed at once
        failures = model.fit_failures() if model.failed().any() else None
        return Knowledge(history, model, failures)

    def choose(
        self,
        knowledge: Knowledge,
        parent: Fork,
        stop: int,
        alpha: float,
        others: Sequence[float],
        guards: Sequence[Guard],
    ) -> Choice:
        """Maximise the quantile over the admitted candidates."""
        if knowledge.model is None or parent.trace is None:
            blind = Blind().choose(knowledge, parent, stop, alpha, others, guards)
            return replace(blind, reason=because("no model", instead=blind.reason))
        goal, value = knowledge.history.goal, parent.recent()
        rates = candidates(goal, parent)
        situation = Situation(parent.multiplier, value, tuple(others), alpha, knowledge.model, knowledge.failures)
        allowed = admitted(rates, situation, guards)
        quantile = knowledge.model.quantile(alpha, rates, start=parent.trace, stop=stop)
        score = np.where(allowed, goal.objective.sign * quantile, -np.inf)
        best = int(np.argmax(score))
        details: dict[str, Any] = {
            "candidates": {
                "rates": rates,
                "quantile": quantile,
                "alpha": alpha,
                "admitted": allowed,
            }
        }
        if knowledge.failures is not None:
            probability = knowledge.failures.probability(knowledge.model.failure_inputs(value, rates))
            details["p_fail"] = {"rates": rates, "probability": probability}
        reason = because("best quantile", alpha=alpha, step=stop, value=quantile[best], candidates=int(allowed.sum()))
        return Choice(float(rates[best]), reason, details)
