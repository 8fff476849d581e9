"""Which runs were stable, and at which rates: the law describes neither divergence nor a warm-up that is too fast.

A fork that was dropped early does not show that its rate is stable over a long run: many rates look good at first.
"""

from collections.abc import Sequence

import numpy as np

from paceline.errors import InputError
from paceline.model.law.settings import PLAN, ROWS
from paceline.model.law.state import SchedulePieces
from paceline.traces import LearningRateRange, Schedule, Trace, is_absurd, is_sound


def has_diverged(trace: Trace) -> bool:
    """Whether a run failed, has an absurd value, or ended far above its first loss."""
    losses = -trace.objective.sign * trace.path()[1]
    if trace.failed or not is_sound(losses).all():
        return trace.failed
    if losses[0] <= 0:
        return bool(is_absurd(losses).any())
    own, few = losses[-len(trace.values) :], max(1, len(trace.values) // 8)
    first = float(np.max(losses[: max(1, len(losses) // 8)]))
    ended_below = float(np.mean(own[-few:])) < ROWS.diverged * first
    return not (ended_below and float(losses.max()) < 5 * ROWS.diverged * first)


def without_diverged(traces: Sequence[Trace]) -> list[Trace]:
    """The runs that did not diverge; all of them if each one did."""
    return [trace for trace in traces if not has_diverged(trace)] or list(traces)


def stable_runs(traces: Sequence[Trace]) -> list[Trace]:
    """The runs that lasted, did not fail, and ended no worse than they began."""
    longest = max(trace.last_step for trace in traces)
    return [trace for trace in traces if trace.last_step >= PLAN.lasting * longest and _improved(trace)]


def highest_stable_rate(traces: Sequence[Trace]) -> float:
    """The highest rate of a stable run; without one, a decade below the lowest of their peaks."""
    stable = stable_runs(traces)
    return max(map(_peak, stable)) if stable else min(map(_peak, traces)) / 10


def stable_range(traces: Sequence[Trace], lr: "tuple[float, float] | LearningRateRange") -> LearningRateRange:
    """The bounds, cut off a little above the highest stable rate."""
    bounds, highest = LearningRateRange.of(lr), highest_stable_rate(traces)
    high = min(bounds.high, PLAN.above * highest)
    if high <= bounds.low:
        raise InputError(
            f"the lowest rate to plan with is {bounds.low:g}, these runs worked at rates up to {highest:g}: "
            "lower the bound, or fit to runs at higher rates"
        )
    return LearningRateRange(bounds.low, high)


def shortest_warmup(traces: Sequence[Trace]) -> float:
    """The shortest warm-up of the stable runs at high rates, as a share of the run."""
    stable = stable_runs(traces)
    high = [trace for trace in stable if _peak(trace) > max(map(_peak, stable)) / 2]
    return min((warmup_share(trace.schedule, trace.last_step) for trace in high), default=0.0)


def warmup_share(schedule: Schedule, stop: int) -> float:
    """The share of a schedule after which the rate is first near its highest value before `stop`."""
    at = np.unique(np.linspace(0, max(stop - 1, 0), 2000).astype(int))
    rates = schedule(at)
    return float(at[np.argmax(rates >= PLAN.near_peak * rates.max())]) / schedule.steps


def _improved(trace: Trace) -> bool:
    values = trace.path()[1]
    return not trace.failed and trace.objective.sign * float(values[-1] - values[0]) >= 0


def _peak(trace: Trace) -> float:
    return float(SchedulePieces.of(trace.schedule, np.array([max(trace.last_step, 1)])).rates.max())
