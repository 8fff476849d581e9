"""What goes to the browser, as plain data: numbers are already words, and text is text, never HTML."""

from collections.abc import Sequence
from typing import Any

from paceline.errors import InputError
from paceline.traces import Schedule
from paceline.views.data import ForkView, StudyView
from paceline.views.format import format_band, format_number, format_progress, format_schedule
from paceline.views.text import describe_settings
from paceline.views.web.study_reader import StudyReader

PAGE_FORKS, PAGE_DECISIONS, PAGE_BYTES = 100, 20, 3_000_000  # the last: of the journal, for decisions
MOST_POINTS = 12_000  # of all traces of a figure: more than a screen has


def summary(study: StudyReader) -> dict[str, Any]:
    """A study in a few lines: what it is, how far it is, how it stands."""
    state = study.state
    counts = {"revision": study.revision, "events": state.count, "decisions": len(state.decisions)}
    written = study.path.stat().st_mtime if study.path.exists() else None
    if study.problem:
        return {**counts, "state": "damaged", "standing": study.problem, "written": written}
    if not state.count:
        return {**counts, "state": "empty", "standing": "Nothing has happened yet.", "written": written}
    view = study.view()
    return {
        **counts,
        "written": written,
        "state": "running" if view.finished is None else "finished",
        "asked": describe_settings(view),
        "standing": standing(view),
        "share": format_progress(view),
        "done": view.done_steps,
        "total": view.total_steps,
        "facts": facts(view),
        "forks": len(state.forks),
        "drawn": len(view.forks),
        "tasks": list(view.tasks),
        "offered": offered_tasks(view),
        "schedule": "" if view.best is None else format_schedule(view.best.schedule),
    }


def standing(view: StudyView) -> str:
    """How a study stands, or ended, in a sentence or two."""
    if view.tasks:
        made = sum(fork.stop is None for fork in view.forks)
        if view.finished is None:
            return f"{format_progress(view)} done."
        if not view.answers:
            return "No run reached the end."
        return f"Over: an answer for each of {len(view.tasks)} tasks, from {made} runs shown here."
    best = view.best
    if best is None:
        return "Nothing has been observed yet." if view.finished is None else "No fork reached the end."
    values = " and ".join(f"{format_number(value)} with {of} weights" for of, value in best.last_values.items())
    if view.finished is None:
        return f"Fork {best.fork} leads at step {best.step:,}: {values}."
    return f"Fork {best.fork} ended best: {values}."


def facts(view: StudyView) -> list[tuple[str, str]]:
    """A handful of figures, each with what it is."""
    best, living = view.best, sum(fork.state in ("running", "leading") for fork in view.forks)
    found = [("of its steps done", f"{view.done_steps / max(view.total_steps, 1):.0%}".replace("%", " %"))]
    if best is not None:
        found.append((f"best value, {view.weights} weights", format_number(view.value(best))))
        found.append(("fork that leads" if view.finished is None else "fork that won", str(best.fork)))
        found.append(_rate(best, view))
    for task, run in list(view.best_runs.items())[:4]:
        found.append((f"best of {task}", format_number(run.value)))
    if view.finished is None:
        found.append(("forks alive", str(living)))
    return found


def _rate(best: ForkView, view: StudyView) -> tuple[str, str]:
    if view.finished is None:
        return "its rate now", format_number(best.rate)
    return "its last rate" if best.schedule.tuned_base is None else "its last peak rate", format_number(best.multiplier)


def forks_page(study: StudyReader, before: int | None) -> dict[str, Any]:
    """The table of forks, the youngest first, a page at a time: those with a number below `before`."""
    numbers = [n for n in sorted(study.state.forks, reverse=True) if before is None or n < before]
    page = numbers[:PAGE_FORKS]
    view = study.view(forks=page)
    known = {fork.fork: fork for fork in view.forks}
    peaked = any(fork.schedule.tuned_base is not None for fork in view.forks)
    named = ["run", "task"] if view.tasks else ["fork"]
    columns = [*named, "state", "value", "step", "rate", *(["peak rate"] * peaked)]
    columns += ["forecast"] if view.tasks else ["from", "forecast"]
    rows = [_row(study, view, known[n], peaked=peaked) for n in page]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return {"columns": columns, "rows": rows, "before": page[-1] if len(page) < len(numbers) else None}


def _row(study: StudyReader, view: StudyView, fork: ForkView, *, peaked: bool) -> list[str]:
    lines = study.state.forks[fork.fork]
    origin = "the start" if lines.parent is None else f"fork {lines.parent} at {lines.start:,}"
    state = f"failed: {fork.reason}" if fork.state == "failed" else fork.state
    cells = [
        str(fork.fork),
        *([fork.task] if view.tasks else []),
        state,
        format_number(view.value(fork)),
        f"{fork.step:,}",
    ]
    cells += [format_number(fork.rate), *([format_number(fork.multiplier)] * peaked), *([] if view.tasks else [origin])]
    return [*cells, format_band(fork.forecast)]


def decisions_page(study: StudyReader, before: int | None) -> dict[str, Any]:
    """Decisions in words, the latest first, a page at a time: those before one, counted from 0."""
    count = len(study.state.decisions)
    end = count if before is None else max(min(before, count), 0)
    numbers = study.latest_decisions(end, PAGE_DECISIONS, PAGE_BYTES)
    rows = list[dict[str, Any]]()
    for at in numbers:
        text = study.decision_text(at)
        rows.append({"at": at, "round": text.round, "step": text.step, "ms": f"{1000 * text.seconds:.3g}"})
        rows[-1]["sentences"] = list(text.sentences)
    return {"rows": rows, "before": numbers[-1] if numbers and numbers[-1] > 0 else None, "count": count}


def offered_tasks(view: StudyView) -> list[str]:
    """The tasks of a family that there is a schedule for; for a study of one run, an empty name if there is one."""
    if not view.tasks:
        return [""] if view.best is not None else []
    return [task for task in view.tasks if task in view.answers or task in view.best_runs]


def offered(view: StudyView, name: str, task: str) -> tuple[Schedule, str]:
    """The schedule that a study offers now, of a task where it is a family, and where it comes from in words."""
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
    return best.schedule, f"fork {best.fork} of the study {name}" + ("" if view.finished else ", not over")


def thinned(view: StudyView, points: int = MOST_POINTS) -> StudyView:
    """The same with at most about so many observations in all, the largest and smallest of each stretch among them."""
    total = sum(len(fork.steps) for fork in view.forks)
    if total <= points:
        return view
    kept = [_thinned_fork(fork, max(points * len(fork.steps) // total, 8)) for fork in view.forks]
    return view._replace(forks=tuple(kept))


def _thinned_fork(fork: ForkView, points: int) -> ForkView:
    length = len(fork.steps)
    if length <= points or not fork.values:
        return fork
    chosen, stretches = {0, length - 1}, max(points // 2, 1)
    for column in fork.values.values():
        whole = range(min(length, len(column)))
        for i in range(stretches):
            stretch = whole[i * length // stretches : (i + 1) * length // stretches]
            if stretch:
                chosen |= {min(stretch, key=column.__getitem__), max(stretch, key=column.__getitem__)}
    keep = sorted(chosen)
    values = {of: _picked(column, keep) for of, column in fork.values.items()}
    return fork._replace(steps=_picked(fork.steps, keep), values=values)


def _picked(column: Sequence[Any], keep: Sequence[int]) -> tuple[Any, ...]:
    return tuple(column[i] for i in keep if i < len(column))
