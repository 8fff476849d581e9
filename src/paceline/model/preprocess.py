"""Checks of the traces that a model takes, and the intervals that it uses."""

from collections.abc import Sequence

from paceline.errors import InputError
from paceline.model.encoder import TraceEncoder
from paceline.model.likelihood import TraceLikelihood
from paceline.model.links import Link
from paceline.model.settings import FitSettings
from paceline.traces import Segment, Trace


def check_traces(traces: Sequence[Trace]) -> list[Trace]:
    """The traces as a list; an error unless they have one objective and different names."""
    if not isinstance(traces, Sequence) or not all(isinstance(trace, Trace) for trace in traces):  # pyright: ignore
        raise InputError(f"expected a list of Trace, got {type(traces).__name__}: put a single trace in a list")
    if not traces:
        raise InputError("expected at least one trace, got none: pass a list of Trace")
    names = [trace.name for trace in traces if trace.name]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"each name must belong to one run, got several runs named {repeated}: rename them")
    objectives = {trace.objective for trace in traces}
    if len(objectives) > 1:
        raise InputError(f"all traces of a model share one objective, got {len(objectives)}: fit one model for each")
    return list(traces)


def usable_segments(segments: Sequence[Segment], link: Link) -> list[Segment]:
    """The intervals that a trace model is fitted to.

    These are the intervals with observations and without absurd values. A monotone link cannot describe those that
    failed, so they are dropped.
    """
    observed = [s for s in segments if s.moments.n > 0 and s.elapsed[-1] > 0 and not s.diverged]
    return [s for s in observed if link.signed or not s.failed]


def trace_likelihood(
    segments: Sequence[Segment], link: Link, encoder: TraceEncoder, settings: FitSettings
) -> TraceLikelihood:
    """The likelihood of these intervals, or of their ends; tasks that share nothing have noises of their own."""
    segments = [segment.ending(settings.end_share) for segment in segments]
    if settings.task_dims > 0 or not encoder.tasks:
        return TraceLikelihood.of(segments, link, encoder.scaling, anchor_noise=settings.anchor_noise)
    group = [encoder.tasks.index(s.task) for s in segments]
    return TraceLikelihood.of(
        segments, link, encoder.scaling, anchor_noise=settings.anchor_noise, group=group, groups=len(encoder.tasks)
    )
