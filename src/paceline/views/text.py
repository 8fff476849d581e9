"""A study as text and tables: its settings, its forks and their origin, its decisions, and its result."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from paceline.safe_text import safe_text
from paceline.study import Checkpoints, Decided, Dropped, Event, Report, describe, describe_all, describe_failure
from paceline.views.data import ForkView, StudyView
from paceline.views.family import describe_family, family_result, run_lines
from paceline.views.format import (
    bound_advice,
    describe_best,
    describe_spent,
    format_band,
    format_best,
    format_cost,
    format_number,
    format_progress,
    format_schedule,
)
from paceline.views.projection import forecasts_by_fork

_COLOURS = {
    "leading": "bold cyan",
    "won": "bold cyan",
    "running": "",
    "ended": "",
    "dropped": "dim",
    "failed": "red",
    "turned": "dim",
}


def make_console(*, stderr: bool = False) -> Console:
    """A console that wraps to the terminal, and not at all into a file or a pipe."""
    console = SafeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else SafeConsole(stderr=stderr, highlight=False, markup=False, width=200)


class SafeConsole(Console):
    """A console on which text of a study cannot steer the terminal."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Every string that is printed, alone or in a table, comes through here."""
        return super().render_str(safe_text(text, keep="\n\t"), **options)


def describe_settings(view: StudyView) -> str:
    """The settings of a study, in one line."""
    if view.tasks:
        return describe_family(view)
    s, strategy = view.settings, view.settings.get("strategy", {})
    low, high = s.get("lr", (0.0, 0.0))
    judged = f"judged by {view.weights} weights, {'larger' if s.get('mode') == 'max' else 'smaller'} is better"
    name = str(strategy.get("strategy", "unknown"))
    base = strategy.get("base", {}).get("name", "")
    kind = f"{name} on a {base.replace('_', '-')} base" if base else name
    return (
        f"{kind}; rates from {low:g} to {high:g}; {format_cost(view.total_steps, view.steps)}; "
        f"{judged}; seed {s.get('seed', 0)}"
    )


def fork_table(view: StudyView, forks: Iterable[ForkView]) -> Table:
    """One line per fork."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    with_peak = any(fork.schedule.tuned_base is not None for fork in view.forks)
    with_forecast = any(fork.forecast is not None for fork in view.forks)
    family = bool(view.tasks)
    for name in (*(("run", "task") if family else ("fork", "from")), "step", "rate now"):
        table.add_column(name, justify="left" if name in ("from", "task") else "right", no_wrap=True)
    with_best = any(fork.kept is not None for fork in view.forks)
    for name in (*(["peak rate"] * with_peak), "value", *(["best"] * with_best)):
        table.add_column(name, justify="right", no_wrap=True)
    if with_forecast:
        table.add_column("forecast of its end" if family else "forecast at its next decision", no_wrap=True)
    table.add_column("state")
    for fork in forks:
        origin = "the start" if fork.parent is None else f"fork {fork.parent} at {fork.start:,}"
        state = f"failed: {fork.reason}" if fork.state == "failed" else fork.state
        row = [str(fork.fork), fork.task if family else origin, f"{fork.step:,}", format_number(fork.rate)]
        row += [format_number(fork.multiplier)] * with_peak + [format_number(view.value(fork))]
        row += [format_best(fork.kept)] * with_best
        table.add_row(*row, *([format_band(fork.forecast)] * with_forecast), state, style=_COLOURS[fork.state])
    return table


def event_lines(event: Event, view: StudyView) -> list[str]:
    """The plain lines of an event, none if it adds nothing. `view` is the study with this event in it."""
    if view.tasks:
        return run_lines(event, view)
    match event:
        case Decided():
            forecasts = [
                f"fork {fork} is expected at {format_band(band)}"
                for fork, band in forecasts_by_fork(event.details, view.settings).items()
            ]
            return [f"decision {event.round}: {'; '.join([*describe_all(event.reasons), *forecasts])}"]
        case Dropped():
            return [f"fork {event.fork} dropped: {describe(event.reason)}"]
        case Report() if event.failure is not None:
            verb = "ended" if event.failure.is_turn else "failed"
            return [f"fork {event.fork} {verb} at step {event.stop:,}: {describe_failure(event.failure)}"]
        case Report():
            fork = view.fork(event.fork)
            at = f"{format_number(view.value(fork))} at rate {format_number(fork.rate)}"
            return [f"fork {event.fork} reached step {event.stop:,}: {at}; {format_progress(view)} done"]
        case _:
            return []


def describe_result(view: StudyView, path: Path) -> "list[str | RenderableType]":
    """How a study ended, or how far it is, and what to do next."""
    if view.tasks:
        return family_result(view, path)
    best = view.best
    if best is None:
        if view.finished is None:
            return ["nothing has been observed yet"]
        return [f"no fork reached the end: {describe(view.decisions[-1].reasons[0])}"]
    values = ", ".join(f"{format_number(value)} ({of} weights)" for of, value in best.last_values.items())
    kept = view.kept
    if view.finished is None:
        so_far = f"; the best so far was {format_best(kept)} of fork {kept.fork}" if kept is not None else ""
        leads = f"fork {best.fork} leads at step {best.step:,}: {values}{so_far}"
        return [f"not over: {format_progress(view)} done; {leads}"]
    origin = (best.fork, best.step) if kept is None else kept.origin
    checkpoint = Checkpoints.of_study(path).path(*origin)  # there is none with Ray Tune, or ask and tell
    saved = f", {view.saved_steps:,} fewer than planned" if view.saved_steps else ""
    state = f"its checkpoint: {checkpoint}" if checkpoint.exists() else "no checkpoint is kept here"
    return [
        f"fork {best.fork} ended best: {values}" if kept is None else describe_best(kept, best),
        format_schedule(best.schedule),
        *bound_advice(best.schedule, view.settings.get("lr", ())),
        f"{view.done_steps:,} steps in all{saved}; {state}",
        f"to use the schedule elsewhere: paceline export {path} --format python",
    ]


def study_page(view: StudyView, path: Path) -> RenderableType:
    """All of a study, for `paceline show`."""
    decisions = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    decisions.add_column("" if view.tasks else "step", justify="right")
    decisions.add_column("decision")
    decisions.add_column("ms", justify="right")
    for decision in view.decisions:
        dropped = () if view.tasks else decision.dropped
        drops = [f"dropped: {', '.join(map(str, dropped))}"] if dropped else []
        words = "; ".join([*describe_all(decision.reasons), *drops])
        decisions.add_row(
            str(decision.round) if view.tasks else f"{decision.step:,}", words, f"{1000 * decision.seconds:.0f}"
        )
    return Group(
        Text(safe_text(f"study {path}"), style="bold"),
        describe_settings(view),
        "",
        fork_table(view, view.forks),
        "",
        decisions,
        "",
        *describe_result(view, path),
        *([f"time: {describe_spent(view.spent)}"] if "training" in view.spent else []),
    )
