"""Guards: which of the candidate rates a strategy may choose from."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from paceline.errors import InputError
from paceline.model import FailureModel, TraceModel
from paceline.strategy.horizon_settings import HORIZON

Rates = Float[np.ndarray, "candidates"]
ROUNDING = 1e-9  # rates that lie on a limit are allowed, although a logarithm may miss it by this much


@dataclass(frozen=True, slots=True, eq=False)
class GuardContext:
    """What a guard may use.

    Args:
        parent_rate: the rate that the parent runs at.
        parent_value: the parent's value now.
        other_rates: rates that other forks run at.
        alpha: order of the quantile that is maximised.
        model: the trace model of this decision, if one could be fitted.
        failures: the failure classifier, if anything has failed.
    """

    parent_rate: float
    parent_value: float
    other_rates: tuple[float, ...]
    alpha: float
    model: TraceModel | None
    failures: FailureModel | None


class Guard(ABC):
    """Which candidates may be chosen."""

    name: ClassVar[str]

    @abstractmethod
    def allows(self, rates: Rates, context: GuardContext) -> Bool[np.ndarray, "candidates"]:
        """True for each candidate that may be chosen."""


@dataclass(frozen=True, slots=True)
class MaxChange(Guard):
    """A rate within so many decades of the parent's."""

    name: ClassVar[str] = "max_change"
    decades: float = 1.0

    def __post_init__(self) -> None:
        if not self.decades > 0:
            raise InputError(f"max_change must be positive, in decades, got {self.decades}: pass 0.45, for example")

    def allows(self, rates: Rates, context: GuardContext) -> Bool[np.ndarray, "candidates"]:
        return np.abs(np.log10(rates / context.parent_rate)) <= self.decades + ROUNDING


@dataclass(frozen=True, slots=True)
class MinSeparation(Guard):
    """A rate at least so many decades from that of every other fork. A fork without others may keep its rate."""

    name: ClassVar[str] = "min_separation"
    decades: float = HORIZON.min_separation

    def __post_init__(self) -> None:
        if not self.decades > 0:
            raise InputError(f"min_separation must be positive, in decades, got {self.decades}: pass 0.2, for example")

    def allows(self, rates: Rates, context: GuardContext) -> Bool[np.ndarray, "candidates"]:
        gaps = np.abs(np.log10(rates[:, None] / np.array(context.other_rates)))
        return np.all(gaps >= self.decades - ROUNDING, axis=1)


@dataclass(frozen=True, slots=True)
class FailureGuard(Guard):
    """A rate that fails with a probability below the order of the quantile: a larger order explores more.

    The paper states this rule in two opposite ways; docs/design.md says why we take this one. It is never dropped.
    """

    name: ClassVar[str] = "failure"

    def allows(self, rates: Rates, context: GuardContext) -> Bool[np.ndarray, "candidates"]:
        return failure_probability(rates, context) < context.alpha


def failure_probability(rates: Rates, context: GuardContext) -> Float[np.ndarray, "candidates"]:
    """P(fail) of each candidate; 0 if nothing has failed yet."""
    if context.failures is None or context.model is None:
        return np.zeros(len(rates))
    return context.failures.probability(context.model.failure_inputs(context.parent_value, rates))


def allowed_candidates(rates: Rates, context: GuardContext, guards: Sequence[Guard]) -> Bool[np.ndarray, "candidates"]:
    """Which candidates all guards allow. If none is left, guards are dropped, the last one first.

    The failure guard stays. If it allows no rate at all, the least risky of those that the others allow is left.
    """
    others = [guard for guard in guards if not isinstance(guard, FailureGuard)]
    by_others = [_all_allow(others[:count], rates, context) for count in range(len(others), -1, -1)]
    failure_guards = [guard for guard in guards if isinstance(guard, FailureGuard)]
    is_safe = _all_allow(failure_guards, rates, context)
    if is_safe.any():
        return next(allowed & is_safe for allowed in by_others if (allowed & is_safe).any())
    allowed = next(allowed for allowed in by_others if allowed.any())
    risk = np.where(allowed, failure_probability(rates, context), np.inf)
    return risk == risk.min()


def _all_allow(guards: Sequence[Guard], rates: Rates, context: GuardContext) -> Bool[np.ndarray, "candidates"]:
    return np.all([np.ones(len(rates), dtype=bool), *(guard.allows(rates, context) for guard in guards)], axis=0)
