"""A plan of the next run as text: what it was learnt from, the schedule, and forecasts beside those of others."""

from math import ceil

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from paceline.safe_text import safe_text
from paceline.shapes import WarmupStableDecay
from paceline.traces import Schedule
from paceline.views.format import format_number, format_schedule
from paceline.views.plan import PlanView, RunEnd

EQUAL_SHARE = 0.1  # of the width of the band: forecasts that differ by less are called equal
CAUTION = (
    "These are forecasts of a law fitted to the runs above. None of these schedules was run. The plan was chosen "
    "by its forecast, so that forecast is optimistic. It warms up as the recorded runs did. The other schedules do "
    "not, and the law cannot predict what that changes."
)


def describe_plan(view: PlanView) -> RenderableType:
    """All of a plan, for `paceline plan`."""
    low, high = view.lr
    goal = "median" if view.quantile == 0.5 else f"{view.quantile:g}-quantile (lower is more careful)"
    return Group(
        _sources(view),
        *(Text(safe_text(f"caveat: {caveat}"), style="yellow") for caveat in view.caveats),
        "",
        Text(f"plan for a run of {view.steps:,} steps", style="bold"),
        describe_schedule(view.schedule),
        f"rates from {low:.3g} to {high:.3g} were searched for the best {goal} of the final value",
        "",
        _forecast_table(view),
        CAUTION,
        _comparison(view),
        *(_recorded(end) for end in view.recorded),
    )


def _sources(view: PlanView) -> str:
    runs = f"{len(view.runs)} run{'s' * (len(view.runs) > 1)}"
    failed = f", {view.failed} of them failed" if view.failed else ""
    return f"learnt from {runs}{failed}, {view.observations:,} observations: {', '.join(view.sources)}"


def _recorded(end: RunEnd) -> str:
    return f"recorded: {end.name} ended at {format_number(end.value)}, step {end.step:,} ({end.description})"


def describe_schedule(schedule: Schedule) -> str:
    """A schedule with its phases: "peak rate 0.01: warm-up over 20 steps (1 %), hold to step 1,400, decay ..."."""
    base, steps = schedule.base, schedule.steps
    if not isinstance(base, WarmupStableDecay):
        return format_schedule(schedule)
    warmup_steps = max(1, ceil(base.warmup * steps))
    warmup = f"warm-up over {warmup_steps:,} step{'s' * (warmup_steps > 1)} ({_percent(base.warmup)})"
    if base.decay == 0:  # a rate for each interval
        rates = Schedule(schedule.multipliers, schedule.change_points, steps)
        return f"{format_schedule(rates)}, after a {warmup}"
    decay_start = min(round((1 - base.decay) * steps), steps - 1)
    hold = f"hold to step {decay_start:,}, " if decay_start > warmup_steps else ""
    shape = "in a straight line" if base.power == 1 else f"with power {base.power:.2g}"
    decay = f"decay to zero over the last {steps - decay_start:,} ({_percent(base.decay)}) {shape}"
    phases = f"{warmup}, {hold}{decay}"
    if len(set(schedule.multipliers.tolist())) > 1:
        return f"{format_schedule(schedule)}: {phases}"
    return f"peak rate {format_number(float(schedule.multipliers[0]))}: {phases}"


def _forecast_table(view: PlanView) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("schedule")
    for name in ("peak rate", "forecast at the end", "90 % band"):
        table.add_column(name, justify="right", no_wrap=True)
    for forecast in (view.plan, *view.usual):
        style = "bold" if forecast is view.plan else ""
        band = f"{format_number(forecast.low)} to {format_number(forecast.high)}"
        table.add_row(forecast.name, format_number(forecast.peak), format_number(forecast.median), band, style=style)
    return table


def _comparison(view: PlanView) -> str:
    """The plan against the best of the usual schedules."""
    plan, best = view.plan, view.usual[0]
    gain = (1.0 if view.mode == "max" else -1.0) * (plan.median - best.median)
    if abs(gain) < EQUAL_SHARE * (plan.high - plan.low):
        return f"the forecasts of the plan and of the best usual schedule, {best.name}, are equal"
    if gain < 0:
        return f"{best.name} has a better forecast than the plan: run that one, or plan with another --family"
    has_ratio = min(plan.median, best.median) > 0
    difference = _percent(abs(plan.median / best.median - 1)) if has_ratio else format_number(gain)
    within_band = plan.low <= best.median <= plan.high
    caution = ". This is less than the band is wide, so a single run may not show it" if within_band else ""
    return f"the forecast of the plan is {difference} better than that of the best usual schedule, {best.name}{caution}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share > 0.1 else f"{100 * share:.2g} %"
