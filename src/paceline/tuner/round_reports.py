"""The reports of a round: transient failures are tried again, and failures that no rate explains stop the study.

A fork that fails is data: the study learns which rates fail. That is wrong for a mistake in the code. So a failure that
has nothing to do with the rate waits until another fork of its task shows that the training works. If none does, the
exception is raised. Nothing is written about it, so the intervals stay open, and the same call goes on once the mistake
is corrected.
"""

import logging
from collections.abc import Generator, Sequence
from typing import NoReturn

from paceline.errors import TrainingError
from paceline.runner import Runner, is_mistake, is_regardless_of_rate, is_transient, without_variables
from paceline.study import Failure, Interval, Report, describe_failure
from paceline.tuner.loop import Tuner

logger = logging.getLogger(__name__)


def round_reports(tuner: Tuner, runner: Runner, intervals: Sequence[Interval], retries: int) -> Generator[Report]:
    """The reports of a round, in any order.

    Args:
        tuner: the study.
        runner: trains the intervals.
        intervals: those of the round.
        retries: how often an interval is tried again after a transient failure.
    """
    lowest = _lowest_of_new_tasks(tuner, intervals)
    first, of_fork = list(lowest.values()), {interval.fork: interval for interval in intervals}
    held = list[Report]()
    in_order = [*first, *(interval for interval in intervals if interval not in first)]
    for report in _with_retries(runner, in_order, retries):
        task = of_fork[report.fork].task
        is_lowest = task in lowest and report.fork == lowest[task].fork
        if is_lowest and is_mistake(report.failure):
            _raise_mistake(report.failure, tuner, [of_fork[report.fork]])
        if is_regardless_of_rate(report.failure):
            held.append(report)
            continue
        yield report
        if is_lowest or task not in lowest:
            lowest.pop(task, None)
            yield from [other for other in held if of_fork[other.fork].task == task]
            held = [other for other in held if of_fork[other.fork].task != task]
    if len(held) == len(intervals) and tuner.is_round_untouched and not (tuner.goal.tasks and _worked_on(tuner)):
        failures = [report.failure for report in held]
        _raise_mistake(next(filter(is_mistake, failures), failures[0]), tuner, intervals)
    yield from held


def _with_retries(runner: Runner, intervals: Sequence[Interval], retries: int) -> Generator[Report]:
    """The runner's reports. Intervals with a transient failure are run again, once the others are over."""
    waiting = list(intervals)
    for left in range(retries, -1, -1):
        failed = list[Interval]()
        for report in runner.run(waiting) if waiting else ():
            if not left or not is_transient(report.failure):
                yield report
                continue
            assert report.failure is not None
            interval = next(interval for interval in waiting if interval.fork == report.fork)
            text = " ".join(describe_failure(without_variables(report.failure)).split())
            logger.info(f"fork {report.fork} is tried again from step {interval.start:,}: {text}")
            failed.append(interval)
        waiting = failed


def _lowest_of_new_tasks(tuner: Tuner, intervals: Sequence[Interval]) -> dict[int, Interval]:
    """The interval with the lowest rate of each task that no fork has worked on yet."""
    worked = _worked_on(tuner)
    lowest: dict[int, Interval] = {}
    for interval in sorted(intervals, key=lambda interval: interval.multiplier):
        if interval.task not in worked:
            lowest.setdefault(interval.task, interval)
    return lowest


def _worked_on(tuner: Tuner) -> set[int]:
    """The tasks of which an interval has reached its end."""
    return {fork.task for fork in tuner.history.forks if fork.failure is None and fork.trace is not None}


def _raise_mistake(failure: Failure | None, tuner: Tuner, intervals: Sequence[Interval]) -> NoReturn:
    """Raise a user's own exception, with a note that says what to do. Others are the cause of a TrainingError."""
    assert failure is not None
    interval, rates = intervals[0], sorted(interval.multiplier for interval in intervals)
    of_task = f" of task {tuner.task_of(interval)!r}" if tuner.goal.tasks else ""
    when = f"after step {interval.start:,}" if interval.start else "in its first interval"
    at = f"all rates ({', '.join(f'{rate:.3g}' for rate in rates)})"
    if len(intervals) == 1:
        at = "the only rate" if interval.start else "the lowest rate"
    advice = "so another rate would not help: correct it, and make the same call again"
    if not is_mistake(failure) or failure.error is None:
        text = f"the training{of_task} failed {when}, at {at}: {describe_failure(failure)}; {advice}"
        raise TrainingError(text) from failure.error
    if interval.start:
        advice += "; if a lower rate may avoid it, raise a FloatingPointError instead"
    failure.error.add_note(f"paceline: the training{of_task} raised this {when}, at {at}, {advice}")
    raise failure.error
