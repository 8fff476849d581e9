"""From logs of old runs to a schedule for the next one: read, fit the law, plan, and say what is expected.

The plan is `LawModel.fit(traces).plan(...)` with bounds and length taken from the runs where they are not
given. Beside it stand the usual schedules at the peak that the same law likes best, and how the recorded runs ended.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paceline.errors import InputError
from paceline.integrations.grouped_warnings import GroupedWarnings
from paceline.integrations.logs import traces_in
from paceline.integrations.series import Rate
from paceline.model import (
    Forecast,
    LawModel,
    PlannedSchedule,
    highest_stable_rate,
    shortest_warmup,
    stable_range,
)
from paceline.shapes import Constant, Cosine, Linear, OneCycle, Shape, WarmupStableDecay
from paceline.study import Study
from paceline.traces import LearningRateRange, Schedule, Trace, is_sound
from paceline.views.plan import EndForecast, ForecastCurve, PlanView, RunEnd, RunLine
from paceline.views.study_view import study_view

USUAL: dict[str, Shape] = {
    "constant": Constant(),
    "linear": Linear(),
    "cosine": Cosine(),
    "one-cycle": OneCycle(),
    "warm-up-stable-decay": WarmupStableDecay(),
}
PEAKS = 25  # tried for each of them
FEWEST = 10  # observations to plan from
INTERVALS = 10  # of multipliers and free rates
POINTS = 100  # of the forecast, to be drawn
CLOSING = 5  # last values, whose mean says how a run ended


class Source(NamedTuple):
    """One log, and the runs in it; `study` where it is one."""

    name: str
    traces: list[Trace]
    study: Study | None


def plan_from(
    sources: "Sequence[str | Path]",
    *,
    steps: int | None = None,
    lr: "tuple[float, float] | None" = None,
    family: str = "shape",
    quantile: float = 0.5,
    step: str | None = None,
    rate: "Rate | None" = None,
    value: str | None = None,
    mode: str = "min",
) -> PlanView:
    """Plan the next run of the model whose runs these logs hold.

    Args:
        sources: study folders, CSV files or TensorBoard logs, all of one model.
        steps: length of the run; by default that of the longest.
        lr: bounds of the rate; by default from a study's lower bound, or a decade below the lowest peak, to the highest
            rate of a run that worked.
        family: "shape", "multipliers" or "free", see `LawModel.plan`.
        quantile: of the final value that is maximised, on the scale of improvement.
        step: column of the step, in tables; see `read_traces` for this and the next.
        rate: column or tag of the rate, or the rate itself.
        value: column or tag of the value.
        mode: "min" or "max", for logs that are no study.
    """
    places = [Path(source).resolve() for source in sources]
    if twice := [str(source) for source, place in zip(sources, places, strict=True) if places.count(place) > 1]:
        raise InputError(f"expected each source once, got {twice[0]} several times: name it once")
    asked = None if lr is None else LearningRateRange.of(lr)
    with GroupedWarnings() as notes:
        read_in = [_read(Path(source), step, rate, value, mode, notes) for source in sources]
    traces = [trace for source in read_in for trace in source.traces]
    seen = sum(int(is_sound(trace.values).sum()) for trace in traces)
    if seen < FEWEST:
        raise InputError(f"expected at least {FEWEST} observations to plan from, got {seen}: log values more often")
    model = LawModel.fit(traces)
    length = steps if steps is not None else max(max(t.last_step, t.schedule.steps) for t in traces)
    bounds = asked or _bounds(read_in, family)
    planned = model.plan(
        steps=length, lr=(bounds.low, bounds.high), family=family, quantile=quantile, intervals=min(INTERVALS, length)
    )
    return _view(read_in, model, planned, stable_range(model, bounds))


def _read(
    path: Path, step: str | None, rate: "Rate | None", value: str | None, mode: str, notes: GroupedWarnings
) -> Source:
    study = Study.open(path) if (path / "study.json").exists() else None
    if study is not None and study.tasks:
        raise InputError(
            f"{path} is a family of tasks, and a plan is for one model: see the schedule for each task with "
            f"`paceline show {path}`"
        )
    return Source(str(path), traces_in(path, notes, step=step, lr=rate, value=value, mode=mode), study)


def _bounds(sources: Sequence[Source], family: str) -> LearningRateRange:
    """From a study's lower bound, or below the lowest peak, to the highest rate that worked; free rates must decay."""
    traces = [trace for source in sources for trace in source.traces]
    high, lows = highest_stable_rate(traces), list[float]()
    for source in sources:
        peaks = [float(rates.max()) for _, rates in map(_rates, source.traces)]
        below = min(high, *peaks) / (100 if family == "free" else 10)
        lows.append(below if source.study is None else float(source.study.settings["lr"][0]))
    return LearningRateRange(min(lows), high)


def _view(sources: Sequence[Source], model: LawModel, planned: PlannedSchedule, bounds: LearningRateRange) -> PlanView:
    traces, schedule = model.traces, planned.schedule
    sign = traces[0].objective.sign
    evenly = np.linspace(int(planned.forecast.steps[0]), schedule.steps, POINTS).astype(int)
    along = model.forecast(schedule, np.union1d(evenly, planned.forecast.steps))
    curve = (along.steps, *along.band(0.9), along.median)
    best = _best(traces)
    return PlanView(
        sources=tuple(_named(source) for source in sources),
        observations=sum(int(is_sound(trace.values).sum()) for trace in traces),
        failed=sum(trace.failed for trace in traces),
        steps=schedule.steps,
        lr=(bounds.low, bounds.high),
        mode=traces[0].objective.mode,
        family=planned.family,
        quantile=planned.quantile,
        caveats=(*planned.caveats, *_caveats(model, schedule, bounds)),
        schedule=schedule,
        plan=_end_forecast("the plan", schedule, along),
        usual=tuple(sorted(_usual(model, bounds, schedule.steps), key=lambda outlook: -sign * outlook.median)),
        recorded=tuple(end for source in sources if (end := _run_end(source)) is not None),
        forecast=ForecastCurve(*(tuple(float(x) for x in column) for column in curve)),
        runs=tuple(_line(trace) for trace in traces),
        best=None if best is None else _line(best, whole=True),
    )


def _named(source: Source) -> str:
    count = len(source.traces)
    kind = "fork" if source.study is not None else "run"
    return f"{source.name} ({count} {kind}{'s' * (count > 1)})"


def _caveats(model: LawModel, schedule: Schedule, bounds: LearningRateRange) -> list[str]:
    """What this plan goes beyond, in words."""
    words, longest = list[str](), max(trace.last_step for trace in model.traces)
    if schedule.steps > 1.1 * longest:
        words.append(f"no run was longer than {longest:,} steps: what comes after is extrapolated")
    peak, warmup = float(schedule.multipliers.max()), shortest_warmup(model.traces)
    if warmup > 0:
        words.append(
            f"every run near the highest rate warmed up, over {100 * warmup:.2g} % or more: "
            "forecasts of schedules that rise faster are too good"
        )
    if peak > 0.99 * bounds.high:
        words.append(
            f"the plan's peak {peak:.3g} is the highest in the search: run once at a higher rate to see if it is better"
        )
    if peak < 1.01 * bounds.low:
        words.append(f"the plan's peak {peak:.3g} is the lowest in the search: lower the bound (--lr)")
    if model.traces[0].objective.weights == "averaged":
        words.append("only averaged weights were observed: forecasts are of these, and lag behind changes of the rate")
    return words


def _usual(model: LawModel, bounds: LearningRateRange, steps: int) -> list[EndForecast]:
    """Each usual schedule at the peak with the best forecast."""
    peaks, sign = bounds.from_unit(np.linspace(0, 1, PEAKS)).tolist(), model.units.sign
    found = list[EndForecast]()
    for name, shape in USUAL.items():
        tried = [Schedule.of(shape, peak, steps) for peak in peaks]
        medians = np.median(model.final(tried), axis=0)
        best = tried[int(np.argmax(sign * medians))]
        found.append(_end_forecast(name, best, model.forecast(best, [steps])))
    return found


def _end_forecast(name: str, schedule: Schedule, forecast: Forecast) -> EndForecast:
    """What a forecast says of the last step."""
    low, high = (float(column[-1]) for column in forecast.band(0.9))
    return EndForecast(name, float(schedule.multipliers.max()), float(forecast.median[-1]), low, high)


def _ended(trace: Trace) -> float:
    return float(np.mean(trace.path()[1][-CLOSING:]))


def _best(traces: Sequence[Trace]) -> Trace | None:
    """The run that ended best among the longest, None where all failed."""
    whole = [trace for trace in traces if not trace.failed]
    longest = max((trace.last_step for trace in whole), default=0)
    rivals = [trace for trace in whole if trace.last_step >= 0.95 * longest]
    return max(rivals, key=lambda trace: trace.objective.sign * _ended(trace), default=None)


def _run_end(source: Source) -> RunEnd | None:
    """How the best run of a source ended: a study's winner, or the best of the others."""
    closing = f"mean of the last {CLOSING} values"
    if source.study is not None:
        view = study_view(source.study.events)
        if view.best is None:
            return None
        _, values = view.whole_run(view.best.fork)
        of = "raw" if "raw" in values else next(iter(values))
        so_far = "the winner" if view.finished is not None else "leading, the study is not over"
        words = f"fork {view.best.fork}, {so_far}, {of} weights, {closing}; its schedule: paceline export {source.name}"
        return RunEnd(source.name, view.best.step, float(np.mean(values[of][-CLOSING:])), words)
    best = _best(source.traces)
    if best is None:
        return None
    return RunEnd(best.name, best.last_step, _ended(best), closing)


def _rates(trace: Trace, begin: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Steps and rates of a run, at most 2,000 of them."""
    at = np.unique(np.linspace(begin, max(trace.last_step - 1, begin), 2000).astype(int))
    return at, trace.schedule(at)


def _line(trace: Trace, *, whole: bool = False) -> RunLine:
    """What to draw of a run: what is its own, or all from its start."""
    steps, values = trace.path() if whole else (trace.steps, trace.values)
    sound = is_sound(values)
    columns = (steps[sound], values[sound], *_rates(trace, 0 if whole else trace.fork_step))
    own, seen, at, rates = (tuple(column.tolist()) for column in columns)
    return RunLine(trace.name, own, seen, at, rates)
