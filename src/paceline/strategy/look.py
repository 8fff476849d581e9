"""Deciding by how a fork will end, not by how it stands: the law's forecast of the final value.

A fork that lowers its rate anneals at once and looks better than it will end; one that holds it looks worse. The law
(`model/law`) forecasts the end of each, and of clones at other rates. It is right about direction once rates have
changed, and wrong on some networks before (docs/research.md), so it speaks only from a share of the run on, and only
overrules what would be done without it where its draws agree. Where it contradicts what has been seen, it is not heard.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from paceline.errors import FitError, InputError
from paceline.model import LawModel
from paceline.strategy.base import Fork, History
from paceline.strategy.choose import Choice
from paceline.strategy.plan import CHALLENGES, Plan, Rung
from paceline.study import Reason, because

SPEAKS, SPEAKS_ALONE = 0.3, 0.45  # shares of a run from which on challengers, and a last fork, follow the law
# share of the draws that have to agree to change a last fork's rate, that of the one challenger, of one of several,
# and to keep a fork that stands behind
SURE_ALONE, SURE_OF_ONE, SURE_OF_SEVERAL, SURE_TO_KEEP = 0.7, 0.85, 0.5, 0.95
STEP, APART = 0.05, 0.1  # decades between candidates, and to what others run at
LASTED = 0.05  # share of a run that a fork has to have lived for its rate to count as one that works


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What the law expects of the forks of a history at one decision."""

    history: History
    model: LawModel

    @classmethod
    def of(cls, history: History) -> "Outlook | None":
        """Fit the law to what all forks observed; None where there is too little to learn from."""
        traces = [fork.raw for fork in history.forks if fork.raw is not None]
        try:
            return cls(history, LawModel.fit(traces)) if traces else None
        except (InputError, FitError):
            return None

    def finals(self, fork: Fork, rates: Sequence[float]) -> Float[np.ndarray, "draws rates"]:
        """Draws of the final value of a clone of a fork at each rate to the end, bigger is better."""
        ahead = [fork.schedule.extend(rate, self.history.goal.steps) for rate in rates]
        return self.history.goal.objective.sign * self.model.final(ahead, start=fork.raw)

    def contradiction(self, leader: Fork, share: float) -> Reason | None:
        """Why the forecast is not used: it contradicts what has been observed. None if it does not.

        The weights' average shows at once most of what a falling rate will show at the end. A law by which the leader,
        annealed, ends worse than the average stands now has not understood the run.
        """
        end = float(np.median(self.finals(leader, [leader.multiplier])))
        sign, stands = self.history.goal.objective.sign, leader.recent(share)
        if end > sign * stands:
            return None
        return because("contradiction", fork=leader.id, forecast=sign * end, now=stands)

    def ranked(self, forks: Sequence[Fork], place: int) -> list[Fork]:
        """Forks in their order, but at `place` or before it the one that ends best, where the law is sure of that."""
        finals = [self.finals(fork, [fork.multiplier])[:, 0] for fork in forks]
        best = int(np.argmax([np.median(draws) for draws in finals]))
        if best <= place or np.mean(finals[best] > finals[place]) <= SURE_TO_KEEP:
            return list(forks)
        rest = [fork for i, fork in enumerate(forks) if i != best]
        return [*rest[:place], forks[best], *rest[place:]]

    def challenger(
        self, parent: Fork, otherwise: Choice, others: Sequence[float], untouched: int, decades: float
    ) -> Choice:
        """The rate of a clone: the one that ends best, where the law is sure that it ends better than the other choice.

        Args:
            parent: what is cloned.
            otherwise: what would be tried without the law.
            others: rates that forks run at.
            untouched: how many forks go on as they are; the more, the more may be dared.
            decades: the largest change.
        """
        rates = self._candidates(parent, decades)
        taken = np.array([*others, parent.multiplier])
        free = rates[np.abs(np.log10(rates[:, None] / taken)).min(1) >= APART - 1e-9]
        return self._best(parent, otherwise, free, SURE_OF_ONE if untouched < 2 else SURE_OF_SEVERAL)

    def going_on(self, fork: Fork, decades: float) -> Choice:
        """The rate of a last fork: its own, unless the law is sure of another."""
        return self._best(
            fork, Choice(fork.multiplier, because("as before")), self._candidates(fork, decades), SURE_ALONE
        )

    def _candidates(self, parent: Fork, decades: float) -> Float[np.ndarray, "rates"]:
        """Rates around the parent's, up to the highest that lasted for a while."""
        goal = self.history.goal
        lasted = [
            fork.multiplier
            for fork in self.history.forks
            if fork.raw is not None and not fork.failure and fork.raw.last_step >= LASTED * goal.steps
        ]
        high = min(goal.lr_range.high, max(lasted, default=parent.multiplier))
        steps = np.arange(-round(decades / STEP), round(decades / STEP) + 1)
        rates = parent.multiplier * 10.0 ** (STEP * steps)
        return rates[(rates >= goal.lr_range.low) & (rates <= high * (1 + 1e-9))]

    def _best(self, parent: Fork, otherwise: Choice, rates: Float[np.ndarray, "rates"], enough: float) -> Choice:
        if not len(rates):
            return otherwise
        gain = self.finals(parent, rates.tolist()) - self.finals(parent, [otherwise.rate])
        best = int(np.argmax(np.median(gain, axis=0)))
        sure = float(np.mean(gain[:, best] > 0))
        if sure < enough:
            return replace(otherwise, reason=because("unsure", instead=otherwise.reason))
        rate = float(rates[best])
        factor = rate / parent.multiplier
        return Choice(
            rate,
            because("ends better", factor=factor, fork=parent.id, probability=sure, otherwise=otherwise.rate),
        )


def with_looks(plan: Plan) -> Plan:
    """A plan that ends in one fork, with rungs at which that fork may change its rate; others have rungs enough."""
    if not plan.rungs or plan.rungs[-1].forks > 1:
        return plan
    later = tuple(Rung(at, 1) for at in CHALLENGES if at >= SPEAKS_ALONE and at > plan.rungs[-1].at + 0.02)
    return replace(plan, rungs=(*plan.rungs, *later))
