"""A warm start begins as a cold start does, and becomes one if the family's rates do not suit the task.

Both begin with the same range test, so nothing is lost by finding this out. The family does not suit the task if

- its first value lies far outside the first values of known runs: this is another loss;
- the rate planned first lies near that at which the range test lost all it had gained, or far below the one that gained
  most;
- the first interval failed, or made no progress, or made it without noise, so that its rate was far too low, and no
  higher one is planned.

Then `SingleRun` decides the rest, from step 0 on. It is shown the range test and its own forks, but not those that
followed the family.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paceline.strategy.base import Decision, Fork, History
from paceline.strategy.single_run import SINGLE_RUN, SingleRun, loss_slope, test_peaks
from paceline.study import Interval, Reason, because
from paceline.traces import Objective, Trace

FAR_OUTSIDE = 0.1  # how far a first value may lie outside the known ones, as a share of the range of known values
NO_NOISE = -0.05  # a ratio of noise to progress below this is the lag of the average and nothing else
NOISE_SHARE = 0.5  # of the first interval, at its end, whose observations show noise and progress
NEAR = 0.375  # in decades, half of what a cold start keeps away from the rate that undid the range test
RISE = 0.1  # in decades: a plan that raises a rate that is too low by this much has noticed it itself


def other_loss(known_runs: Sequence[Trace], objective: Objective, first: float) -> Reason | None:
    """Why a first value says that the loss is not the family's; None if it does not."""
    known = [values[np.isfinite(values)] for _, values in (trace.path() for trace in known_runs)]
    starts = [values[0] for values in known if len(values)]
    low, high = min(starts), max(starts)
    if objective.transform == "log" and first <= 0:
        return because("other loss", value=first, low=low, high=high)
    first_values, every = objective.to_model(np.array(starts)), objective.to_model(np.concatenate(known))
    slack = FAR_OUTSIDE * float(every.max() - first_values.min())
    value = float(objective.to_model(np.array([first]))[0])
    if first_values.min() - slack <= value <= first_values.max() + slack:
        return None
    return because("other loss", value=first, low=low, high=high)


def shows_something(test: Fork) -> bool:
    """Whether a range test has enough observations to be read."""
    return test.averaged is not None and len(test.averaged.steps) > 1


def unsuitable_rate(history: History, rate: float) -> Reason | None:
    """Why the range test says that a rate is wrong for the task; None if it does not."""
    first, highest = test_peaks(as_cold(history, history.forks[:1]))
    low, high = 10 ** (first - SINGLE_RUN.first_peak_gap), 10 ** (highest + SINGLE_RUN.max_peak_gap - NEAR)
    return None if low <= rate <= high else because("unsuitable rate", rate=rate, low=low, high=high)


def below_tested(history: History, intervals: Sequence[Interval]) -> tuple[tuple[Interval, ...], tuple[Reason, ...]]:
    """The intervals at rates that the range test allows, as a cold start limits its own, and why they were lowered."""
    highest = 10 ** test_peaks(as_cold(history, history.forks[:1]))[1]
    if all(interval.multiplier <= highest for interval in intervals):
        return tuple(intervals), ()
    lowered = tuple(
        replace(interval, schedule=interval.schedule.with_last(min(interval.multiplier, highest)))
        for interval in intervals
    )
    return lowered, (because("range test limit", rate=highest),)


def wasted_interval(fork: Fork, planned: float) -> Reason | None:
    """Why a fork's only interval was at a wrong rate; None if it was not, or if the plan has noticed it.

    Args:
        fork: after its first interval.
        planned: its next rate.
    """
    if fork.raw is None or fork.averaged is None:
        return None
    (steps, raw), (_, averaged) = fork.raw.path(), fork.averaged.path()
    sign = -fork.averaged.objective.sign
    if min(sign * raw[-1], sign * averaged[-1]) >= sign * raw[0]:
        return because("no progress", rate=fork.multiplier, value=raw[-1], before=raw[0])
    recent = steps >= NOISE_SHARE * steps[-1]
    is_raised = planned > fork.multiplier * 10**RISE
    if is_raised or len(raw) != len(averaged) or np.array_equal(raw, averaged) or recent.sum() < SINGLE_RUN.min_losses:
        return None
    progress = -sign * loss_slope(steps[recent].astype(float), averaged[recent])
    noise = sign * float(np.mean(raw[recent] - averaged[recent]))
    if progress <= 0 or noise >= NO_NOISE * progress:
        return None
    return because("rate too low", rate=fork.multiplier, noise=noise, progress=progress)


def cold_forks(history: History) -> tuple[Fork, ...]:
    """The forks of the cold start that a study has become: the range test, and runs of its own length; or none."""
    runs = tuple(fork for fork in history.forks if fork.schedule.steps < history.goal.steps)
    return runs if len(runs) > 1 else ()


def decide_cold(history: History, forks: Sequence[Fork]) -> Decision:
    """What `SingleRun` decides if these forks are all there are."""
    decision = SingleRun().propose(as_cold(history, forks))
    own, new = {fork.id for fork in forks}, max((fork.id for fork in history.forks), default=-1) + 1
    intervals = tuple(
        replace(interval, fork=interval.fork if interval.fork in own else new) for interval in decision.intervals
    )
    others = tuple((fork.id, because("cold start")) for fork in history.alive if fork.id not in own)
    return replace(decision, intervals=intervals, drops=(*others, *decision.drops))


def as_cold(history: History, forks: Sequence[Fork]) -> History:
    """The history as `SingleRun` sees it: these forks, by their averaged weights."""
    goal = replace(history.goal, objective=SingleRun().objective(history.goal.objective))
    return replace(history, goal=goal, forks=tuple(replace(fork, trace=fork.averaged) for fork in forks))
