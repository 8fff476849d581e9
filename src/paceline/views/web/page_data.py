"""The data of the pages. Numbers are formatted here; text goes to the browser as text, never as HTML."""

from collections.abc import Sequence
from typing import Any

from paceline.errors import InputError
from paceline.traces import Schedule
from paceline.views.data import ForkView, StudyView
from paceline.views.format import (
    describe_best,
    format_band,
    format_best,
    format_number,
    format_origin,
    format_progress,
    format_schedule,
    format_seconds,
)
from paceline.views.text import describe_settings
from paceline.views.web.study_reader import StudyReader

PAGE_FORKS, PAGE_DECISIONS = 100, 20
PAGE_BYTES = 3_000_000  # of the journal, read for one page of decisions
MAX_POINTS = 12_000  # of all traces of a figure: more than a screen has
MAX_TASKS = 4  # tasks whose best value is shown at the top


def summary(study: StudyReader) -> dict[str, Any]:
    """A study in a few lines: its settings, how far it is, and its best value."""
    state = study.state
    counts = {"revision": study.revision, "events": state.count, "decisions": len(state.decisions)}
    written = study.written or None
    if study.problem:
        return {**counts, "state": "damaged", "status": study.problem, "written": written}
    if not state.count:
        return {**counts, "state": "empty", "status": "Nothing has happened yet.", "written": written}
    view = study.view()
    return {
        **counts,
        "written": written,
        "state": "running" if view.finished is None else "finished",
        "settings": describe_settings(view),
        "status": status(view, len(state.forks)),
        "progress": format_progress(view),
        "done": view.done_steps,
        "total": view.total_steps,
        "highlights": highlights(view),
        "forks": len(state.forks),
        "shown_forks": len(view.forks),
        "tasks": list(view.tasks),
        "schedule_tasks": schedule_tasks(view),
        "schedule": "" if view.best is None else format_schedule(view.best.schedule),
    }


def status(view: StudyView, runs: int) -> str:
    """How far a study is, or how it ended, in a sentence or two. `runs` counts its forks, shown or not."""
    if view.tasks:
        return _family_status(view, runs)
    best = view.best
    if best is None:
        return "Nothing has been observed yet." if view.finished is None else "No fork reached the end."
    values = " and ".join(
        f"{format_number(value)} with {weights} weights" for weights, value in best.last_values.items()
    )
    kept = view.kept
    if view.finished is None:
        so_far = f" The best so far was {format_best(kept)} of fork {kept.fork}." if kept is not None else ""
        return f"Fork {best.fork} leads at step {best.step:,}: {values}.{so_far}"
    if kept is None:
        return f"Fork {best.fork} ended best: {values}."
    early = f" The study ended {view.saved_steps:,} steps early." if view.saved_steps else ""
    return f"F{describe_best(kept, best)[1:]}.{early}"


def _family_status(view: StudyView, runs: int) -> str:
    if view.finished is None:
        return f"{format_progress(view)} done."
    if not view.answers:
        return "No run reached the end."
    return f"A schedule for each of {len(view.tasks)} tasks, from {runs} runs."


def highlights(view: StudyView) -> list[tuple[str, str]]:
    """A few numbers, each with its name."""
    best, alive = view.best, sum(fork.state in ("running", "leading") for fork in view.forks)
    what = "of the budget spent" if view.costs else "of all steps done"
    rows = [(what, f"{view.share_done:.0%}".replace("%", " %"))]
    kept = view.kept
    if kept is not None:
        rows.append((f"best value, {kept.weights} weights", format_number(kept.value)))
        rows.append(("its step", f"{kept.step:,}"))
    elif best is not None:
        rows.append((f"best value, {view.weights} weights", format_number(view.value(best))))
    if best is not None:
        rows.append(("leading fork" if view.finished is None else "best fork", str(best.fork)))
        rows.append(_rate(best, view))
    for task, run in list(view.best_runs.items())[:MAX_TASKS]:
        rows.append((f"best of {task}", format_number(run.value)))
    if view.finished is None:
        rows.append(("running" if view.tasks else "forks alive", str(alive)))
    return rows


def _rate(best: ForkView, view: StudyView) -> tuple[str, str]:
    if view.finished is None:
        return "its rate now", format_number(best.rate)
    return "its last rate" if best.schedule.tuned_base is None else "its last peak rate", format_number(best.multiplier)


def forks_page(study: StudyReader, before: int | None) -> dict[str, Any]:
    """A page of the table of forks, the latest first: those with a number below `before`."""
    numbers = [n for n in sorted(study.state.forks, reverse=True) if before is None or n < before]
    page = numbers[:PAGE_FORKS]
    view = study.view(forks=page)
    forks = {fork.fork: fork for fork in view.forks}
    with_peak = any(fork.schedule.tuned_base is not None for fork in view.forks)
    names = ["run", "task"] if view.tasks else ["fork"]
    with_best = any(fork.kept is not None for fork in view.forks)
    columns = [*names, "state", "value", *(["best"] * with_best), "step", "rate", *(["peak rate"] * with_peak)]
    columns += ["forecast"] if view.tasks else ["from", "forecast"]
    rows = [_row(study, view, forks[n], with_peak=with_peak, with_best=with_best) for n in page]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return {"columns": columns, "rows": rows, "before": page[-1] if len(page) < len(numbers) else None}


def _row(study: StudyReader, view: StudyView, fork: ForkView, *, with_peak: bool, with_best: bool) -> list[str]:
    of_state = study.state.forks[fork.fork]  # its parent may not be among the forks of the view
    origin = "the start" if of_state.parent is None else f"fork {of_state.parent} at {of_state.start:,}"
    state = f"failed: {fork.reason}" if fork.state == "failed" else fork.state
    cells = [str(fork.fork), fork.task] if view.tasks else [str(fork.fork)]
    cells += [state, format_number(view.value(fork)), *([format_best(fork.kept)] * with_best)]
    cells += [f"{fork.step:,}", format_number(fork.rate)]
    if with_peak:
        cells.append(format_number(fork.multiplier))
    if not view.tasks:
        cells.append(origin)
    return [*cells, format_band(fork.forecast)]


def decisions_page(study: StudyReader, before: int | None) -> dict[str, Any]:
    """A page of decisions in English, the latest first: those before one, counted from 0."""
    count = len(study.state.decisions)
    end = count if before is None else max(min(before, count), 0)
    numbers = study.latest_decisions(end, PAGE_DECISIONS, PAGE_BYTES)
    rows = list[dict[str, Any]]()
    for at in numbers:
        text = study.decision_text(at)
        took = format_seconds(text.seconds)
        rows.append({"at": at, "round": text.round, "step": text.step, "took": took, "sentences": text.sentences})
    return {"rows": rows, "before": numbers[-1] if numbers and numbers[-1] > 0 else None, "count": count}


def schedule_tasks(view: StudyView) -> list[str]:
    """The tasks of a family that have a schedule. For a study of one run, an empty name if it has one."""
    if not view.tasks:
        return [""] if view.best is not None else []
    return [task for task in view.tasks if task in view.answers or task in view.best_runs]


def best_schedule(view: StudyView, name: str, task: str) -> tuple[Schedule, str]:
    """The best schedule of a study, or of one of its tasks, and in English where it comes from."""
    if view.tasks:
        if task in view.answers:
            return view.answers[task].schedule, f"the answer for task {task} of the study {name}"
        if task in view.best_runs:
            run = view.best_runs[task]
            return run.schedule, f"run {run.fork}, the best of task {task} of the study {name}"
        raise InputError(f"there is no schedule for task {task!r} yet: wait until one of its runs is done")
    best = view.best
    if best is None:
        raise InputError("there is no schedule yet: nothing has been observed")
    return best.schedule, format_origin(view, name)


def thin_view(view: StudyView, points: int = MAX_POINTS) -> StudyView:
    """The view with at most about `points` observations in all: the largest and smallest of each stretch of steps."""
    total = sum(len(fork.steps) for fork in view.forks)
    if total <= points:
        return view
    forks = [_thin_fork(fork, max(points * len(fork.steps) // total, 8)) for fork in view.forks]
    return view._replace(forks=tuple(forks))


def _thin_fork(fork: ForkView, points: int) -> ForkView:
    length = len(fork.steps)
    if length <= points or not fork.values:
        return fork
    chosen, stretches = {0, length - 1}, max(points // 2, 1)
    for column in fork.values.values():
        rows = range(min(length, len(column)))
        for i in range(stretches):
            stretch = rows[i * length // stretches : (i + 1) * length // stretches]
            if stretch:
                chosen |= {min(stretch, key=column.__getitem__), max(stretch, key=column.__getitem__)}
    order = sorted(chosen)
    values = {weights: _rows(column, order) for weights, column in fork.values.items()}
    return fork._replace(steps=_rows(fork.steps, order), values=values)


def _rows(column: Sequence[Any], numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(column[i] for i in numbers if i < len(column))
