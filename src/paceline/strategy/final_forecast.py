"""Deciding by how a fork will end, not by its value now: forecasts of the final value.

A fork that lowers its rate anneals at once, so its value looks better than its end will be; a fork that holds its rate
looks worse. The law (`paceline.model.LawModel`) forecasts the end of each fork, and of clones at other rates.
docs/research.md, "Tuning on the fly", shows that it is right about the direction once rates have changed, and wrong on
some networks before. So it is used from a share of the run on, it overrules other rules only if enough of its draws
agree, and it is not used at a decision if it contradicts what has been observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from paceline.errors import FitError, InputError
from paceline.model import LawModel
from paceline.strategy.base import Fork, History
from paceline.strategy.horizon_settings import FINAL_FORECAST
from paceline.strategy.rate_choosers import RateChoice
from paceline.study import Reason, because

ROUNDING = 1e-9  # rates that lie on a limit are allowed, although a logarithm may miss it by this much


@dataclass(frozen=True, slots=True, eq=False)
class FinalForecast:
    """Forecasts of the final values of the forks of a history, at one decision.

    Args:
        history: everything observed so far.
        model: the law, fitted to it.
    """

    history: History
    model: LawModel

    @classmethod
    def fit(cls, history: History) -> "FinalForecast | None":
        """Fit the law to what all forks observed; None if there is too little to learn from."""
        traces = [fork.raw for fork in history.forks if fork.raw is not None]
        try:
            return cls(history, LawModel.fit(traces)) if traces else None
        except (InputError, FitError):
            return None

    def final_values(self, fork: Fork, rates: Sequence[float]) -> Float[np.ndarray, "draws rates"]:
        """Draws of the final value of a clone of a fork that keeps each rate to the end; bigger is better."""
        schedules = [fork.schedule.extend(rate, self.history.goal.steps) for rate in rates]
        return self.history.goal.objective.sign * self.model.final(schedules, start=fork.raw)

    def contradiction(self, leader: Fork, share: float) -> Reason | None:
        """Why the forecast is not used: it contradicts what has been observed. None if it does not.

        The average of the weights shows at once most of what a falling rate will show at the end. A law that expects
        the leader, annealed, to end worse than its average is now does not describe this run.

        Args:
            leader: the best fork.
            share: share of its latest observations that its value is the mean of.
        """
        final = float(np.median(self.final_values(leader, [leader.multiplier])))
        sign, now = self.history.goal.objective.sign, leader.recent(share)
        if final > sign * now:
            return None
        return because("contradiction", fork=leader.id, forecast=sign * final, now=now)

    def promote_best(self, forks: Sequence[Fork], place: int) -> list[Fork]:
        """The forks in their order, but with the one that ends best moved up to `place`, if enough draws agree."""
        finals = [self.final_values(fork, [fork.multiplier])[:, 0] for fork in forks]
        best = int(np.argmax([np.median(draws) for draws in finals]))
        if best <= place or np.mean(finals[best] > finals[place]) <= FINAL_FORECAST.ranking_agreement:
            return list(forks)
        others = [fork for i, fork in enumerate(forks) if i != best]
        return [*others[:place], forks[best], *others[place:]]

    def choose_for_clone(
        self, parent: Fork, otherwise: RateChoice, other_rates: Sequence[float], unchanged: int, max_change: float
    ) -> RateChoice:
        """The rate of a clone that ends best, if enough draws agree that it ends better than another choice.

        Args:
            parent: the fork that is cloned.
            otherwise: the choice that was made without the forecast.
            other_rates: rates of other forks.
            unchanged: how many forks keep their rates. The more, the more a clone may risk.
            max_change: the largest change of the rate, in decades.
        """
        rates = self._candidate_rates(parent, max_change)
        taken = np.array([*other_rates, parent.multiplier])
        gaps = np.abs(np.log10(rates[:, None] / taken)).min(1)
        free = rates[gaps >= FINAL_FORECAST.min_rate_gap - ROUNDING]
        only = unchanged < 2
        agreement = FINAL_FORECAST.only_clone_agreement if only else FINAL_FORECAST.clone_agreement
        return self._choose_best(parent, otherwise, free, agreement)

    def _candidate_rates(self, parent: Fork, max_change: float) -> Float[np.ndarray, "rates"]:
        """Rates around the parent's, up to the highest at which a fork was stable."""
        goal, step = self.history.goal, FINAL_FORECAST.rate_step
        stable = [fork.multiplier for fork in self.history.forks if is_stable(fork, goal.steps)]
        high = min(goal.lr_range.high, max(stable, default=parent.multiplier))
        powers = np.arange(-round(max_change / step), round(max_change / step) + 1)
        rates = parent.multiplier * 10.0 ** (step * powers)
        return rates[(rates >= goal.lr_range.low) & (rates <= high * (1 + ROUNDING))]

    def _choose_best(
        self, parent: Fork, otherwise: RateChoice, rates: Float[np.ndarray, "rates"], agreement: float
    ) -> RateChoice:
        """The rate that ends best, if at least this share of the draws prefers it to the other choice."""
        if not len(rates):
            return otherwise
        gain = self.final_values(parent, rates.tolist()) - self.final_values(parent, [otherwise.rate])
        best = int(np.argmax(np.median(gain, axis=0)))
        probability = float(np.mean(gain[:, best] > 0))
        if probability < agreement:
            return replace(otherwise, reason=because("unsure", instead=otherwise.reason))
        rate = float(rates[best])
        factor = rate / parent.multiplier
        reason = because(
            "ends better", factor=factor, fork=parent.id, probability=probability, otherwise=otherwise.rate
        )
        return RateChoice(rate, reason)


def is_stable(fork: Fork, steps: int) -> bool:
    """Whether a fork has trained for some time without failing, so that others may take its rate."""
    has_failed = fork.failure is not None and not fork.failure.is_turn
    return not has_failed and fork.raw is not None and fork.raw.last_step >= FINAL_FORECAST.min_lifetime_share * steps
