"""Stable rates of a family of tasks: up to which rate runs of a task do not fail, by the intervals that were run.

Task m has a highest stable rate. Its log10 is theta_m ~ N(mu, tau^2): tasks of a family are alike, as far as their runs
show. An interval at log10 rate r fails with probability Phi((r - theta_m) / WIDTH), or by chance for other reasons. All
integrals are sums over a grid, so P(fail | r, m) is exact, and it rises with r.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from paceline.errors import InputError

WIDTH = 0.05  # decades from rates that last to those that fail
CHANCE = 0.02  # of a label that has nothing to do with the rate
SPREADS = (0.1, 0.3, 1.0)  # tau, in decades, equally likely
SPACING, ABOVE = 0.02, 1.0  # of the grid, in decades: its points, and how far it reaches above the highest rate


@dataclass(frozen=True, slots=True, eq=False)
class StableRates:
    """The distribution of theta for each task.

    >>> rates = StableRates.fit(np.array([-2.0, -1.0, 0.0]), np.array([False, False, True]), ["a", "a", "a"])
    >>> rates.probability(np.array([-1.5, -0.5, 0.5]), "a").round(1).tolist()
    [0.0, 0.5, 1.0]

    Args:
        grid: values of theta.
        tasks: P(theta) of each task with intervals.
        new: P(theta) of any other task.
    """

    grid: Float[np.ndarray, "grid"]
    tasks: "dict[str, Float[np.ndarray, 'grid']]"
    new: Float[np.ndarray, "grid"]

    @classmethod
    def fit(
        cls, log_rates: Float[np.ndarray, "n"], failed: Bool[np.ndarray, "labels"], tasks: Sequence[str]
    ) -> "StableRates":
        """The posterior, given intervals.

        Args:
            log_rates: log10 of their rates.
            failed: whether they failed.
            tasks: whose they are.
        """
        if not len(log_rates) == len(failed) == len(tasks) > 0:
            raise InputError(
                f"expected one label and one task per interval, got {len(log_rates)}, {len(failed)} and {len(tasks)}: "
                "pass as many of each, at least one"
            )
        grid = np.arange(log_rates.min() - ABOVE, log_rates.max() + ABOVE + SPACING, SPACING)
        fails = CHANCE + (1 - 2 * CHANCE) * _normal_cdf((log_rates[:, None] - grid) / WIDTH)
        logs, names = np.log(np.where(failed[:, None], fails, 1 - fails)), np.array(tasks)
        totals = {name: logs[names == name].sum(0) for name in dict.fromkeys(tasks)}
        return cls._of_likelihoods(grid, {name: np.exp(total - total.max()) for name, total in totals.items()})

    @classmethod
    def _of_likelihoods(
        cls, grid: Float[np.ndarray, "grid"], likelihoods: "dict[str, Float[np.ndarray, 'grid']]"
    ) -> "StableRates":
        """The posterior, given P(labels of m | theta_m) of each task; mu is equally likely anywhere on the grid."""
        gaps = grid - grid[:, None]
        prior = np.stack([np.exp(-0.5 * (gaps / spread) ** 2) for spread in SPREADS])
        prior /= prior.sum(-1, keepdims=True)  # P(theta | tau, mu)
        evidence = {name: prior @ likelihood for name, likelihood in likelihoods.items()}  # P(labels of m | tau, mu)
        log_weight = np.sum([np.log(each) for each in evidence.values()], 0)
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()  # P(tau, mu | all labels)
        tasks = {
            # P(theta_m | all labels) = sum P(tau, mu | all labels) P(theta_m | tau, mu, labels of m)
            name: likelihood * np.einsum("sm,smt->t", weight / evidence[name], prior)
            for name, likelihood in likelihoods.items()
        }
        return cls(grid, tasks, np.einsum("sm,smt->t", weight, prior))

    def probability(self, log_rates: Float[np.ndarray, "rates"], task: str) -> Float[np.ndarray, "rates"]:
        """P(fail) of an interval of a task, which may be new, at each log10 rate."""
        return _normal_cdf((log_rates[:, None] - self.grid) / WIDTH) @ self.tasks.get(task, self.new)

    def highest(self, task: str, log_rates: Float[np.ndarray, "rates"], risk: float) -> float:
        """The highest of these log10 rates that fails with a probability below `risk`; the lowest if none does."""
        safe = log_rates[self.probability(log_rates, task) < risk]
        return float(safe.max() if len(safe) else log_rates.min())


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr  # imported late: scipy takes as long as all of numpy

    return ndtr(x)
