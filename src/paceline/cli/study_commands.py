"""`paceline show`, `export` and `replay`: show a study, write its schedule, and train under it once more."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli.application import app, print_json, print_line, report_errors
from paceline.cli.options import FactoryArgument, FormatName, JsonOption, StudyArgument, TaskOption
from paceline.cli.study_loading import load_view
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.traces import Schedule
    from paceline.views import ForkView, StudyView


@app.command()
def show(study: StudyArgument, json: JsonOption = False) -> None:
    """Show a study: settings, forks, decisions and the result. It may still be running."""
    with report_errors():
        from paceline.study import reading

        view = load_view(study)
        if json:
            from paceline.views import study_json

            with reading(study):
                data = study_json(view)
            print_json({"study": str(study), **data})
            return
        from paceline.views import make_console, study_page

        with reading(study):
            page = study_page(view, study)
        make_console().print(page)


@app.command()
def export(
    study: StudyArgument,
    format: Annotated[  # noqa: A002
        FormatName, typer.Option(help="json keeps the structure; python is a function.")
    ] = FormatName.json,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", show_default="stdout")] = None,
    task: TaskOption = None,
    best: Annotated[
        bool, typer.Option("--best", help="Of a family: the schedule of the task's best run, not its answer.")
    ] = False,
) -> None:
    """Write the schedule that a study found: as JSON, as a table, or as a Python function without dependencies."""
    with report_errors():
        from paceline.study import reading
        from paceline.views import as_csv, as_python

        view = load_view(study)
        with reading(study):
            schedule, origin = _schedule_and_origin(view, study, task, best=best)
            text = {
                FormatName.json: lambda: json_module.dumps(schedule.to_json(), indent=1) + "\n",
                FormatName.csv: lambda: as_csv(schedule),
                FormatName.python: lambda: as_python(schedule),
            }[format]()
        if output is None:
            typer.echo(text, nl=False)
        else:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(text)
            print_line(f"wrote {output}: {origin}")


def _schedule_and_origin(
    view: "StudyView", study: Path, task: str | None, *, best: bool = False
) -> "tuple[Schedule, str]":
    """The schedule that a study found, or found for a task of a family, and a sentence on where it comes from."""
    if not view.tasks:
        if task is not None:
            raise InputError(f"{study} is a study of one run, got --task {task}: leave it out")
        from paceline.views import format_origin

        return _best(view, study).schedule, format_origin(view, str(study))
    name = _check_task(view, study, task)
    answer, run = view.answers.get(name), view.best_runs.get(name)
    if answer is not None and not best:
        return answer.schedule, f"the answer for task {name} of the study {study}"
    if run is None:
        why = "none of its runs reached the end" if view.finished is not None else "none of its runs is done yet"
        raise InputError(f"{study} has no schedule to offer for task {name!r}: {why}")
    if view.finished is None:
        print_line(
            f"note: {study} is not over: this is the schedule of the best run of task {name!r} so far, {run.fork}"
        )
    return run.schedule, f"run {run.fork}, the best of task {name} of the study {study}"


def _check_task(view: "StudyView", study: Path, task: str | None) -> str:
    if task not in view.tasks:
        got = "none" if task is None else repr(task)
        raise InputError(f"{study} is a family, expected --task with one of {', '.join(view.tasks)}, got {got}")
    return task


def _best(view: "StudyView", study: Path) -> "ForkView":
    """The fork that won, or the one that leads, with a note that it only leads."""
    best = view.best
    if best is None:
        why = "every fork failed" if view.finished is not None else "nothing has been observed yet"
        raise InputError(f"{study} has no schedule to offer: {why}")
    if view.finished is None:
        from paceline.views import format_progress

        print_line(
            f"note: {study} is not over, {format_progress(view)} are done: this is its best fork so far, {best.fork}"
        )
    return best


@app.command()
def replay(study: StudyArgument, factory: FactoryArgument, json: JsonOption = False, task: TaskOption = None) -> None:
    """Train once, from the start, under the schedule that a study found, and compare with its winner.

    For a family, --task names the task. The run is compared with the best run of that task.
    """
    with report_errors():
        from paceline.factory import load_factory

        view = load_view(study)
        schedule, _ = _schedule_and_origin(view, study, task)
        best = _run_to_compare(view, study, task)
        make_training = load_factory(factory)

        from paceline.replay import compare_runs, replay_schedule
        from paceline.views import format_schedule, make_console

        console = make_console()
        if not json:
            console.print(f"training {schedule.steps:,} steps: {format_schedule(schedule)}", soft_wrap=True)
        run = replay_schedule(make_training, schedule, None if json else console)
        if json:
            from paceline.views import finite_values

            steps, values = view.whole_run(best.fork)
            original = {"fork": best.fork, "steps": steps, "values": values}
            again = {"steps": run.steps, "values": finite_values(run.values)}
            print_json({"study": original, "replay": again})
        else:
            console.print(compare_runs(view, best.fork, run))


def _run_to_compare(view: "StudyView", study: Path, task: str | None) -> "ForkView":
    """The run that a replay is compared with."""
    if view.best is not None:
        return view.best
    run = view.best_runs.get(_check_task(view, study, task))
    if run is None:
        raise InputError(f"no run of task {task!r} reached the end: there is nothing to compare a replay with")
    return view.fork(run.fork)
