"""Runs as a family's model takes them: on the family's base, and failures as intervals without progress.

The increments of a monotone link are never negative, so an interval that failed cannot be fitted as it was observed.
Without it the search would return to the same rates again and again. So a run that failed counts as one whose value
stayed the same over the interval it failed in.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Constant, Recorded, shape_of
from paceline.strategy.multitask.space import Space
from paceline.traces import Schedule, Segmenter, Trace

FLAT_OBSERVATIONS = 3  # of an interval whose value stays the same
RATE_POINTS = 1024  # at which the rate of a decaying schedule is read


def preprocess_runs(traces: Sequence[Trace], space: Space, *, signed: bool = False) -> list[Trace]:
    """The runs on the space's base, failed ones as runs whose value stayed the same; without runs that have no value.

    With a signed link intervals may get worse, so only runs that could not go on are changed.
    """
    runs = [replace(trace, schedule=schedule_on_base(trace, space)) for trace in traces]
    if not runs:
        return []
    segmenter = Segmenter.for_traces(runs, space.change_points)
    flat = [with_flat_failure(trace, segmenter, signed=signed) for trace in runs]
    return [trace for trace in flat if trace is not None]


def schedule_on_base(trace: Trace, space: Space) -> Schedule:
    """The schedule of a run in the terms of the space: multipliers of the same base, or rates."""
    schedule, base = trace.schedule, shape_of(space.base)
    if isinstance(base, Constant):
        return schedule if schedule.tuned_base is None else _as_rates(schedule)
    if schedule.base != base or schedule.steps != space.steps:
        raise InputError(
            f"expected runs of {space.steps:,} steps on the base {base}, got {trace.name or 'one'} of "
            f"{schedule.steps:,} on {schedule.base}: multipliers of different bases cannot be compared, "
            "use base='constant' to compare rates"
        )
    return schedule


def _as_rates(schedule: Schedule) -> Schedule:
    points = schedule.change_points[(schedule.change_points > 0) & (schedule.change_points < schedule.steps)]
    even = np.linspace(0, schedule.steps - 1, RATE_POINTS).round().astype(int)
    at = np.unique(np.concatenate([even, points, points - 1]))
    shape = Recorded(tuple(at.tolist()), tuple(schedule(at.astype(float)).tolist()))
    return Schedule([1.0], [0, schedule.steps], base=shape)


def with_flat_failure(trace: Trace, segmenter: Segmenter, *, signed: bool = False) -> Trace | None:
    """The run, flat from where it failed for good to the end of that interval; None if it has no value."""
    segments = segmenter.split(trace)
    if not segments:
        return None
    if not (trace.failed or (segments[-1].failed and not signed)):
        return trace
    sound = [i for i, segment in enumerate(segments) if not segment.failed]
    start = segments[sound[-1] + 1 if sound else 0].start
    points = segmenter.points(trace.schedule, start + 1)
    end = int(points[points > start][0])
    steps, values = trace.path()
    level = float(values[np.searchsorted(steps, start)])
    own = (trace.steps <= start).sum()
    flat = np.unique(np.linspace(start, end, FLAT_OBSERVATIONS + 1).round().astype(int))[1:]
    return replace(
        trace,
        steps=np.concatenate([trace.steps[:own], flat]),
        values=np.concatenate([trace.values[:own], np.full(len(flat), level)]),
        failed=False,
    )
