"""Forks as Ray Tune's trials: how many there are, and what each has shown of its interval."""

import math
from dataclasses import dataclass, field, replace

from paceline.errors import InputError
from paceline.integrations.ray_tune.rates import staircase
from paceline.integrations.ray_tune.record import State
from paceline.strategy import Dynamic
from paceline.study import Interval


@dataclass(slots=True)
class Running:
    """A proposal in a trial, the state it begins from, and what was seen of it."""

    proposal: Interval
    origin: State
    steps: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    failure: str = ""

    def observe(self, step: int, value: float) -> None:
        """One more iteration; one that was seen before, as after a stair, counts once."""
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)
            self.values.append(value)

    @property
    def sound(self) -> bool:
        """Whether every value is a number."""
        return all(math.isfinite(value) for value in self.values)

    @property
    def reported(self) -> bool:
        """Whether there is nothing more to wait for."""
        return bool(self.steps) and (self.steps[-1] >= self.proposal.stop or not self.sound)


def strategy_for(trials: int, *, steps: int, cost: float | None, stairs: int) -> Dynamic:
    """The default strategy, by the one value that a trial reports, which is of its weights as they are."""
    if cost is None and trials < 2:
        raise InputError(f"expected at least two trials to compare, got num_samples={trials}: pass 4, or 8")
    base = staircase(steps, stairs) if stairs else None
    horizon = Dynamic.horizon(base=base, forks=trials) if cost is None else Dynamic.horizon(base=base, cost=cost)
    return replace(horizon, weights="raw")
