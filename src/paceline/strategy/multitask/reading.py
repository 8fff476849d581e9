"""Runs as a family's model takes them: on the family's base, and with failures as what they were, no progress.

The model's increments are never negative, so an interval that failed cannot be fitted as it was, and left out it would
look as if nobody had been there: the search would go there again and again. A run that ended in failure counts as one
that stood still over the interval it failed in.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paceline.errors import InputError
from paceline.model import segmenter_for
from paceline.shapes import Constant, Recorded, shape_of
from paceline.strategy.multitask.space import Space
from paceline.traces import Schedule, Segmenter, Trace

HELD = 3  # observations of an interval that stood still
POINTS = 1024  # at which a decaying schedule is read off as rates


def readable(traces: Sequence[Trace], space: Space, *, signed: bool = False) -> list[Trace]:
    """The runs on the space's base, failed ones as runs that stood still; what has no value to learn from is left out.

    With a signed link intervals may get worse, so that only runs that could not go on are changed.
    """
    known = [replace(trace, schedule=on_base(trace, space)) for trace in traces]
    if not known:
        return []
    segmenter = segmenter_for(known, space.change_points, "step", 1)
    return [kept for trace in known if (kept := stood_still(trace, segmenter, signed=signed)) is not None]


def on_base(trace: Trace, space: Space) -> Schedule:
    """The schedule of a run as the space has it: multipliers of the same base, or rates."""
    schedule, base = trace.schedule, shape_of(space.base)
    if isinstance(base, Constant):
        return schedule if schedule.tuned_base is None else _rates(schedule)
    if schedule.base != base or schedule.steps != space.steps:
        raise InputError(
            f"expected runs of {space.steps:,} steps on the base {base}, got {trace.name or 'one'} of "
            f"{schedule.steps:,} on {schedule.base}: multipliers of other bases do not compare, use base='constant', "
            "where rates do"
        )
    return schedule


def _rates(schedule: Schedule) -> Schedule:
    points = schedule.change_points[(schedule.change_points > 0) & (schedule.change_points < schedule.steps)]
    even = np.linspace(0, schedule.steps - 1, POINTS).round().astype(int)
    at = np.unique(np.concatenate([even, points, points - 1]))
    shape = Recorded(tuple(at.tolist()), tuple(schedule(at.astype(float)).tolist()))
    return Schedule([1.0], [0, schedule.steps], base=shape)


def stood_still(trace: Trace, segmenter: Segmenter, *, signed: bool = False) -> Trace | None:
    """The run, its values held from where it began to fail for good to the end of that interval; None without any."""
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
    held = np.unique(np.linspace(start, end, HELD + 1).round().astype(int))[1:]
    return replace(
        trace,
        steps=np.concatenate([trace.steps[:own], held]),
        values=np.concatenate([trace.values[:own], np.full(len(held), level)]),
        failed=False,
    )
