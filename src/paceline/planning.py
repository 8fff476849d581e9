"""From logs of old runs to a schedule for the next one: read the logs, fit the law, plan, and forecast.

The plan is `LawModel.fit(traces).plan(...)`. Bounds and length are taken from the runs if they are not given. It is
compared with the usual schedules, each at the peak with the best forecast, and with how the recorded runs ended.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paceline.errors import InputError
from paceline.integrations import GroupedWarnings, LogColumns, Rate, read_log
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
from paceline.views import EndForecast, ForecastCurve, PlanView, RunEnd, RunLine, study_view

USUAL_SHAPES: dict[str, Shape] = {
    "constant": Constant(),
    "linear": Linear(),
    "cosine": Cosine(),
    "one-cycle": OneCycle(),
    "warm-up-stable-decay": WarmupStableDecay(),
}
PEAKS = 25  # peaks tried for each usual shape
MIN_OBSERVATIONS = 10  # needed to fit the law
INTERVALS = 10  # intervals of multipliers and of free rates
CURVE_POINTS = 100  # points of the forecast in a figure
FIGURE_RATES = 2000  # points of a rate in a figure
END_VALUES = 5  # last values, whose mean is how a run ended


class PlanSource(NamedTuple):
    """One log and the runs in it. `study` is set if the log is a study."""

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
        mode: "min" or "max". A study has its own mode.
    """
    paths = [Path(source).resolve() for source in sources]
    if twice := [str(source) for source, path in zip(sources, paths, strict=True) if paths.count(path) > 1]:
        raise InputError(f"expected each source once, got {twice[0]} several times: name it once")
    wanted_bounds = None if lr is None else LearningRateRange.of(lr)
    with GroupedWarnings() as grouped:
        columns = LogColumns(step, rate, value, mode)
        logs = [_read(Path(source), columns, grouped) for source in sources]
    traces = [trace for log in logs for trace in log.traces]
    observations = sum(int(is_sound(trace.values).sum()) for trace in traces)
    if observations < MIN_OBSERVATIONS:
        raise InputError(
            f"expected at least {MIN_OBSERVATIONS} observations to plan from, got {observations}: log values more often"
        )
    model = LawModel.fit(traces)
    length = steps if steps is not None else max(max(t.last_step, t.schedule.steps) for t in traces)
    bounds = wanted_bounds or _bounds(logs, family)
    planned = model.plan(
        steps=length, lr=(bounds.low, bounds.high), family=family, quantile=quantile, intervals=min(INTERVALS, length)
    )
    return _view(logs, model, planned, stable_range(model.traces, bounds))


def _read(path: Path, columns: LogColumns, grouped: GroupedWarnings) -> PlanSource:
    study = Study.open(path) if (path / "study.json").exists() else None
    if study is not None and study.tasks:
        raise InputError(
            f"{path} is a family of tasks, and a plan is for one model: see the schedule for each task with "
            f"`paceline show {path}`"
        )
    return PlanSource(str(path), read_log(path, grouped, columns), study)


def _bounds(logs: Sequence[PlanSource], family: str) -> LearningRateRange:
    """From a study's lower bound, or below the lowest peak, to the highest rate that worked; free rates must decay."""
    traces = [trace for log in logs for trace in log.traces]
    high, lows = highest_stable_rate(traces), list[float]()
    for log in logs:
        peaks = [float(rates.max()) for _, rates in map(_rates, log.traces)]
        below = min(high, *peaks) / (100 if family == "free" else 10)
        lows.append(below if log.study is None else float(log.study.settings["lr"][0]))
    return LearningRateRange(min(lows), high)


def _view(logs: Sequence[PlanSource], model: LawModel, planned: PlannedSchedule, bounds: LearningRateRange) -> PlanView:
    traces, schedule = model.traces, planned.schedule
    sign = traces[0].objective.sign
    spread = np.linspace(int(planned.forecast.steps[0]), schedule.steps, CURVE_POINTS).astype(int)
    forecast = model.forecast(schedule, np.union1d(spread, planned.forecast.steps))
    curve = (forecast.steps, *forecast.band(0.9), forecast.median)
    best = _best(traces)
    return PlanView(
        sources=tuple(_describe(log) for log in logs),
        observations=sum(int(is_sound(trace.values).sum()) for trace in traces),
        failed=sum(trace.failed for trace in traces),
        steps=schedule.steps,
        lr=(bounds.low, bounds.high),
        mode=traces[0].objective.mode,
        family=planned.family,
        quantile=planned.quantile,
        caveats=(*planned.caveats, *_caveats(model, schedule, bounds)),
        schedule=schedule,
        plan=_end_forecast("the plan", schedule, forecast),
        usual=tuple(sorted(_usual(model, bounds, schedule.steps), key=lambda forecast: -sign * forecast.median)),
        recorded=tuple(end for log in logs if (end := _run_end(log)) is not None),
        forecast=ForecastCurve(*(tuple(float(x) for x in column) for column in curve)),
        runs=tuple(_line(trace) for trace in traces),
        best=None if best is None else _line(best, whole=True),
    )


def _describe(log: PlanSource) -> str:
    count = len(log.traces)
    kind = "fork" if log.study is not None else "run"
    return f"{log.name} ({count} {kind}{'s' * (count > 1)})"


def _caveats(model: LawModel, schedule: Schedule, bounds: LearningRateRange) -> list[str]:
    """What this plan does that the recorded runs did not."""
    caveats, longest = list[str](), max(trace.last_step for trace in model.traces)
    if schedule.steps > 1.1 * longest:
        caveats.append(f"no run was longer than {longest:,} steps: what comes after is extrapolated")
    peak, warmup = float(schedule.multipliers.max()), shortest_warmup(model.traces)
    if warmup > 0:
        caveats.append(
            f"every run near the highest rate warmed up, over {100 * warmup:.2g} % or more: "
            "forecasts of schedules that rise faster are too good"
        )
    if peak > 0.99 * bounds.high:
        caveats.append(
            f"the plan's peak {peak:.3g} is the highest in the search: run once at a higher rate to see if it is better"
        )
    if peak < 1.01 * bounds.low:
        caveats.append(f"the plan's peak {peak:.3g} is the lowest in the search: lower the bound (--lr)")
    if model.traces[0].objective.weights == "averaged":
        caveats.append(
            "only averaged weights were observed: forecasts are of these, and lag behind changes of the rate"
        )
    return caveats


def _usual(model: LawModel, bounds: LearningRateRange, steps: int) -> list[EndForecast]:
    """Each usual schedule at the peak with the best forecast."""
    peaks, sign = bounds.from_unit(np.linspace(0, 1, PEAKS)).tolist(), model.units.sign
    forecasts = list[EndForecast]()
    for name, shape in USUAL_SHAPES.items():
        candidates = [Schedule.of(shape, peak, steps) for peak in peaks]
        medians = np.median(model.final(candidates), axis=0)
        best = candidates[int(np.argmax(sign * medians))]
        forecasts.append(_end_forecast(name, best, model.forecast(best, [steps])))
    return forecasts


def _end_forecast(name: str, schedule: Schedule, forecast: Forecast) -> EndForecast:
    """The forecast at the last step."""
    low, high = (float(column[-1]) for column in forecast.band(0.9))
    return EndForecast(name, float(schedule.multipliers.max()), float(forecast.median[-1]), low, high)


def _end_value(trace: Trace) -> float:
    return float(np.mean(trace.path()[1][-END_VALUES:]))


def _best(traces: Sequence[Trace]) -> Trace | None:
    """The run that ended best among the longest, None if all failed."""
    whole = [trace for trace in traces if not trace.failed]
    longest = max((trace.last_step for trace in whole), default=0)
    longest_runs = [trace for trace in whole if trace.last_step >= 0.95 * longest]
    return max(longest_runs, key=lambda trace: trace.objective.sign * _end_value(trace), default=None)


def _run_end(log: PlanSource) -> RunEnd | None:
    """How the best run of a source ended: a study's winner, or the best of the others."""
    closing = f"mean of the last {END_VALUES} values"
    if log.study is not None:
        view = study_view(log.study.events)
        if view.best is None:
            return None
        _, values = view.whole_run(view.best.fork)
        weights = "raw" if "raw" in values else next(iter(values))
        place = "the winner" if view.finished is not None else "leading, the study is not over"
        description = (
            f"fork {view.best.fork}, {place}, {weights} weights, {closing}; its schedule: paceline export {log.name}"
        )
        return RunEnd(log.name, view.best.step, float(np.mean(values[weights][-END_VALUES:])), description)
    best = _best(log.traces)
    if best is None:
        return None
    return RunEnd(best.name, best.last_step, _end_value(best), closing)


def _rates(trace: Trace, begin: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Steps and rates of a run, at most `FIGURE_RATES` of them."""
    steps = np.unique(np.linspace(begin, max(trace.last_step - 1, begin), FIGURE_RATES).astype(int))
    return steps, trace.schedule(steps)


def _line(trace: Trace, *, whole: bool = False) -> RunLine:
    """What to draw of a run: its own part, or the whole run with its parents'."""
    steps, values = trace.path() if whole else (trace.steps, trace.values)
    sound = is_sound(values)
    columns = (steps[sound], values[sound], *_rates(trace, 0 if whole else trace.fork_step))
    return RunLine(trace.name, *(tuple(column.tolist()) for column in columns))
