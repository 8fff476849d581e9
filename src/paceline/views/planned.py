"""A plan as plain named tuples, then as a page of text and as a picture: what it was learnt from, and what is expected.

Forecasts and records are told apart everywhere: a schedule that was never run has a forecast, a run has a value.
"""

from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from paceline.errors import InputError
from paceline.shapes import WarmupStableDecay
from paceline.traces import Schedule
from paceline.views.words import number, schedule_in_words

# Okabe and Ito's colours, as in `picture`
_PLAN, _RUN, _BEST = "#0072B2", "#999999", "#E69F00"


class RunLine(NamedTuple):
    """A recorded run, or the part of it that is a fork's own: what to draw."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    rate_steps: tuple[int, ...]
    rates: tuple[float, ...]


class ExpectedEnd(NamedTuple):
    """A schedule's forecast at the end: median and 90 % band of what would be recorded."""

    name: str
    peak: float
    median: float
    low: float
    high: float


class Reached(NamedTuple):
    """How well a recorded run ended."""

    name: str
    step: int
    value: float
    words: str


class PlanView(NamedTuple):
    """A plan, with all that is said about it.

    `curve` is the forecast along the plan: steps, low, high, median. `usual` holds usual schedules at the peak that the
    same law likes best, best first; `best` is the best recorded run from its start.
    """

    sources: tuple[str, ...]
    observations: int
    failed: int
    steps: int
    lr: tuple[float, float]
    mode: str
    family: str
    quantile: float
    caveats: tuple[str, ...]
    schedule: Schedule
    plan: ExpectedEnd
    usual: tuple[ExpectedEnd, ...]
    reached: tuple[Reached, ...]
    curve: tuple[tuple[float, ...], ...]
    runs: tuple[RunLine, ...]
    best: RunLine | None


def plan_page(view: PlanView) -> RenderableType:
    """All of a plan, for `paceline plan`."""
    count, failed = len(view.runs), f", {view.failed} of them failed" if view.failed else ""
    low, high = view.lr
    goal = "the median" if view.quantile == 0.5 else f"the {view.quantile:g}-quantile (lower is more careful)"
    return Group(
        f"learnt from {count} run{'s' * (count > 1)}{failed}, {view.observations:,} observations: "
        f"{', '.join(view.sources)}",
        *(Text(f"caveat: {caveat}", style="yellow") for caveat in view.caveats),
        "",
        Text(f"plan for a run of {view.steps:,} steps", style="bold"),
        planned_in_words(view.schedule),
        f"looked for between {low:.3g} and {high:.3g}, by {goal} of the final value",
        "",
        _table(view),
        "forecasts by the law fitted to the runs above: none of these schedules was run; "
        "the plan is what this law likes best, so its own forecast is on the bright side; it warms up as the runs did, "
        "which others leave out, and the law cannot tell what that does",
        _comparison(view),
        *(
            f"recorded: {run.name} ended at {number(run.value)}, step {run.step:,} ({run.words})"
            for run in view.reached
        ),
    )


def planned_in_words(schedule: Schedule) -> str:
    """A schedule with its shape: "peak rate 0.01: warm-up over 20 steps (1 %), hold to step 1,400, decay ..."."""
    base, steps = schedule.base, schedule.steps
    if not isinstance(base, WarmupStableDecay):
        return schedule_in_words(schedule)
    turn = max(1, ceil(base.warmup * steps))
    rising = f"warm-up over {turn:,} step{'s' * (turn > 1)} ({_percent(base.warmup)})"
    if base.decay == 0:  # rates on intervals
        return f"{schedule_in_words(Schedule(schedule.multipliers, schedule.change_points, steps))}, after a {rising}"
    end = min(round((1 - base.decay) * steps), steps - 1)
    hold = f"hold to step {end:,}, " if end > turn else ""
    power = "in a straight line" if base.power == 1 else f"with power {base.power:.2g}"
    shape = f"{rising}, {hold}decay to zero over the last {steps - end:,} ({_percent(base.decay)}) {power}"
    if len(set(schedule.multipliers.tolist())) > 1:
        return f"{schedule_in_words(schedule)}: {shape}"
    return f"peak rate {number(float(schedule.multipliers[0]))}: {shape}"


def plan_json(view: PlanView) -> dict[str, Any]:
    """The view as plain data, for scripts; without the recorded runs, which are where they were read from."""
    steps, low, high, median = view.curve
    left_out = {"runs", "best", "curve", "schedule", "plan", "usual", "reached"}
    return {
        **{key: value for key, value in view._asdict().items() if key not in left_out},
        "runs": len(view.runs),
        "schedule": view.schedule.to_json(),
        "plan": view.plan._asdict(),
        "usual": [outlook._asdict() for outlook in view.usual],
        "reached": [reached._asdict() for reached in view.reached],
        "forecast": {"steps": steps, "low": low, "median": median, "high": high},
    }


def _table(view: PlanView) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("schedule")
    for name in ("peak rate", "forecast at the end", "90 % band"):
        table.add_column(name, justify="right", no_wrap=True)
    for outlook in (view.plan, *view.usual):
        style = "bold" if outlook is view.plan else ""
        band = f"{number(outlook.low)} to {number(outlook.high)}"
        table.add_row(outlook.name, number(outlook.peak), number(outlook.median), band, style=style)
    return table


def _comparison(view: PlanView) -> str:
    """The plan against the best of the usual schedules, as a sentence."""
    plan, best = view.plan, view.usual[0]
    gain = (1.0 if view.mode == "max" else -1.0) * (plan.median - best.median)
    if abs(gain) < 0.1 * (plan.high - plan.low):
        return f"the plan and the best of the usual ones, {best.name}, are forecast to end alike"
    if gain < 0:
        return f"{best.name} is forecast to end better than the plan: run that one, or plan with another --family"
    ratio = min(plan.median, best.median) > 0
    by = _percent(abs(plan.median / best.median - 1)) if ratio else number(gain)
    inside = plan.low <= best.median <= plan.high
    doubt = ": less than the band is wide, so a single run may not show it" if inside else ""
    return f"the plan is forecast to end {by} better than the best of the usual ones, {best.name}{doubt}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.1 else f"{100 * share:.2g} %"


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before any work is done."""
    if find_spec("matplotlib") is None:
        raise InputError("a figure needs matplotlib, which is not installed: pip install 'paceline[plot]'")
    from matplotlib.figure import Figure

    known: dict[str, str] = Figure().canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise InputError(f"expected a figure that ends in .png, .pdf or .svg, got {str(path)!r}: give it such a name")


def draw_plan(view: PlanView, path: Path) -> None:
    """Draw the recorded runs, and the plan with its forecast: values above, rates below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    axes: Any = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for run in view.runs:
        _line(axes, run, color=_RUN, lw=0.9)
    count = len(view.runs)
    axes[0].plot([], [], color=_RUN, lw=0.9, label=f"{count} recorded run{'s' * (count > 1)}")
    if view.best is not None and count > 1:
        _line(axes, view.best, color=_BEST, lw=1.5, label="the best of them")
    steps, low, high, median = view.curve
    axes[0].fill_between(steps, low, high, color=_PLAN, alpha=0.2, lw=0)
    axes[0].plot(steps, median, color=_PLAN, lw=2.2, label="the plan: forecast and 90 % band")
    at = range(0, view.steps, ceil(view.steps / 2000))
    axes[1].plot(at, [view.schedule(step) for step in at], color=_PLAN, lw=2.2)
    _frame(axes, view)
    figure.savefig(path, dpi=120)  # pyright: ignore[reportUnknownMemberType]


def _frame(axes: Any, view: PlanView) -> None:
    """Scales and limits: down to where a rate is as good as zero."""
    drawn = [*(value for run in view.runs for value in run.values), *view.curve[1]]
    peaks = [max(run.rates) for run in view.runs if run.rates]
    last = max(view.steps, *(run.steps[-1] for run in view.runs if run.steps))
    top = max(*peaks, view.plan.peak)
    axes[0].set(ylabel="value", yscale="log" if min(drawn) > 0 else "linear")
    axes[0].legend(frameon=False)
    axes[1].set(yscale="log", xlabel="step", ylabel="learning rate")
    axes[1].set(xlim=(0, last), ylim=(min(*peaks, top / 100) / 2, 2 * top))
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)


def _line(axes: Any, run: RunLine, **style: Any) -> None:
    axes[0].plot(run.steps, run.values, **style)
    axes[1].plot(run.rate_steps, run.rates, **{**style, "label": None})
