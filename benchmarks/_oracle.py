"""What a perfect forecast would be worth: `judge_by="final"` with the closed form of the quadratic in place of the law.

It knows the expected loss of every schedule, not the luck of a run. What it gains over the same plan without it is what
a better law could still gain there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.problems import Quadratic
from paceline.strategy import Dynamic, FinalForecast, Fork, History

QUADRATICS = {
    "quadratic 1": Quadratic(1.0, 500),
    "quadratic 0.1": Quadratic(0.1, 500),
    "edge": Quadratic(0.1, 1000),
}


@dataclass(frozen=True, slots=True, eq=False)
class ClosedForm(FinalForecast):
    """The expected final losses themselves."""

    problem: Quadratic

    def final_values(self, fork: Fork, rates: Sequence[float]) -> np.ndarray:
        """One draw: the expected final loss at each rate, bigger is better."""
        ahead = [fork.schedule.extend(rate, self.history.goal.steps) for rate in rates]
        with np.errstate(all="ignore"):
            losses = [self.problem.expected_loss(schedule)[-1] for schedule in ahead]
        return -np.nan_to_num(np.array([losses]), nan=1e300, posinf=1e300)


@dataclass(frozen=True, slots=True)
class Oracle(Dynamic):
    """A strategy that knows how every fork will end."""

    problem: Quadratic = QUADRATICS["quadratic 1"]

    def _fit_final_forecast(self, history: History) -> FinalForecast | None:
        fitted = FinalForecast.fit(history)
        return None if fitted is None else ClosedForm(fitted.history, fitted.model, self.problem)


def oracle(name: str, cost: float) -> Oracle:
    """The strategy at a cost that knows how forks will end on one of the quadratics."""
    strategy = Dynamic.horizon(cost=cost, judge_by="final")
    return Oracle(
        **{field: getattr(strategy, field) for field in strategy.__dataclass_fields__}, problem=QUADRATICS[name]
    )
