"""Guards: which candidate rates a strategy may choose from. Each restricts the set that is maximised over."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from paceline.errors import InputError
from paceline.model import FailureModel, TraceModel

Rates = Float[np.ndarray, "candidates"]


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """What a guard may look at: the parent's rate and value, the rates others run at, the models, the order alpha."""

    rate: float
    value: float
    others: tuple[float, ...]
    alpha: float
    model: TraceModel | None
    failures: FailureModel | None


class Guard(ABC):
    """Which candidates are admitted."""

    name: ClassVar[str]

    @abstractmethod
    def admits(self, rates: Rates, situation: Situation) -> Bool[np.ndarray, "candidates"]:
        """True for each candidate that may be chosen."""


@dataclass(frozen=True, slots=True)
class MaxChange(Guard):
    """At most so many decades from the parent's rate."""

    name: ClassVar[str] = "max_change"
    decades: float = 1.0

    def __post_init__(self) -> None:
        if not self.decades > 0:
            raise InputError(f"max_change must be positive, in decades, got {self.decades}")

    def admits(self, rates: Rates, situation: Situation) -> Bool[np.ndarray, "candidates"]:
        return np.abs(np.log10(rates / situation.rate)) <= self.decades + 1e-9


@dataclass(frozen=True, slots=True)
class MinSeparation(Guard):
    """At least so many decades from every rate that another fork runs at."""

    name: ClassVar[str] = "min_separation"
    decades: float = 0.12

    def admits(self, rates: Rates, situation: Situation) -> Bool[np.ndarray, "candidates"]:
        others = np.array(situation.others or (situation.rate,))
        return np.abs(np.log10(rates[:, None] / others)).min(1) >= self.decades - 1e-9


@dataclass(frozen=True, slots=True)
class FailureGuard(Guard):
    """P(fail) below the order of the quantile: larger alpha explores more (docs/design.md, where the paper differs)."""

    name: ClassVar[str] = "failure"

    def admits(self, rates: Rates, situation: Situation) -> Bool[np.ndarray, "candidates"]:
        if situation.failures is None or situation.model is None:
            return np.ones(len(rates), dtype=bool)
        inputs = situation.model.failure_inputs(situation.value, rates)
        return situation.failures.probability(inputs) < situation.alpha
