"""What a trace model takes: runs of one objective with names of their own, the intervals that say something."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.model.encoder import TraceEncoder
from paceline.model.likelihood import TraceLikelihood
from paceline.model.links import Link
from paceline.traces import LearningRateRange, Segment, Trace


@dataclass(frozen=True, slots=True)
class FitSettings:
    """What a fit was asked for, so that it can be done again; see `TraceModel.fit`."""

    inducing: int
    task_dims: int
    lr: "tuple[float, float] | LearningRateRange | None"
    anchor_noise: bool
    random_effect: bool
    summed_rate: bool = False

    def __post_init__(self) -> None:
        if self.inducing < 1:
            raise InputError(f"inducing must be at least 1, got {self.inducing}: leave it out for the default")
        if not isinstance(self.task_dims, int) or self.task_dims < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"tasks is the dimension of the embedding, at least 0, or None, got {self.task_dims}")


def check_traces(traces: Sequence[Trace]) -> list[Trace]:
    """The traces as a list, or what is wrong with them."""
    if not isinstance(traces, Sequence) or not all(isinstance(trace, Trace) for trace in traces):  # pyright: ignore
        raise InputError(f"expected a list of Trace, got {type(traces).__name__}: put a single trace in a list")
    if not traces:
        raise InputError("expected at least one trace, got none: pass a list of Trace")
    names = [trace.name for trace in traces if trace.name]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"a name is the identity of a run, got several runs named {repeated}: rename them")
    objectives = {trace.objective for trace in traces}
    if len(objectives) > 1:
        raise InputError(f"all traces of a model share one objective, got {len(objectives)}: fit one model each")
    return list(traces)


def trace_likelihood(
    segments: Sequence[Segment], link: Link, encoder: TraceEncoder, settings: FitSettings
) -> TraceLikelihood:
    """What the intervals say; tasks that share nothing do not share their noise either."""
    if settings.task_dims > 0 or not encoder.tasks:
        return TraceLikelihood.of(segments, link, encoder.scaling, anchor_noise=settings.anchor_noise)
    group = [encoder.tasks.index(s.task) for s in segments]
    return TraceLikelihood.of(
        segments, link, encoder.scaling, anchor_noise=settings.anchor_noise, group=group, groups=len(encoder.tasks)
    )


def usable_segments(segments: Sequence[Segment], link: Link) -> list[Segment]:
    """Intervals the trace model is fitted to: those with observations and, for a monotone link, that did not fail."""
    return [s for s in segments if s.moments.n > 0 and s.elapsed[-1] > 0 and (link.signed or not s.failed)]
