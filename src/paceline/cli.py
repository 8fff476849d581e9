"""The command line: tune a training, look at a study, take its schedule elsewhere, plan the next run.

Commands import what they need when they run, so that help and `show` do not wait for torch. What paceline refuses is
one readable message and exit code 2; Ctrl-C is exit code 130 and leaves a study that can be continued.
"""

import json as json_module
import logging
import shlex
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.errors import InputError, PacelineError, TrainingError

if TYPE_CHECKING:
    from rich.console import Console

    from paceline.runner import Factories, Runner
    from paceline.strategy import Goal, Strategy
    from paceline.views.data import ForkView, StudyView

app = typer.Typer(
    help="Tune the learning rate of a training on the fly.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class Preset(StrEnum):
    """The two ways to tune."""

    horizon = "horizon"
    greedy = "greedy"


class Where(StrEnum):
    """What forks run on."""

    local = "local"
    streams = "streams"
    ray = "ray"


class Mode(StrEnum):
    """Whether small or large values are good."""

    min = "min"
    max = "max"


class Format(StrEnum):
    """What a schedule is written as."""

    json = "json"
    csv = "csv"
    python = "python"


class Family(StrEnum):
    """Which schedules a plan is chosen from."""

    shape = "shape"
    multipliers = "multipliers"
    free = "free"


StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder.")]
FactoryName = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:FACTORY",
        help="A function, importable from this folder, that is called with nothing and returns a training.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, typer.Option(help="Of everything random.")]


def _say(line: str) -> None:
    """Print to stderr, where it does not mix with what was asked for."""
    typer.echo(line, err=True)


@contextmanager
def _readable() -> Generator[None]:
    """Errors, warnings and what is worth knowing as one line each."""

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"note: {message}")

    handler, logger = logging.StreamHandler(), logging.getLogger("paceline")  # to stderr, as the notes
    handler.setFormatter(logging.Formatter("note: %(message)s"))
    with warnings.catch_warnings():
        warnings.showwarning = note
        logger.addHandler(handler)
        level = logger.level
        logger.setLevel(logging.INFO)
        try:
            yield
        except KeyboardInterrupt:
            _say("stopped")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise
        except (PacelineError, OSError) as error:
            from paceline.factory import where

            cause = error.__cause__ if isinstance(error, TrainingError) else None
            notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
            _say(f"error: {error}{where(cause) if cause is not None else notes}")
            raise typer.Exit(2) from None
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


@app.command()
def tune(
    factory: FactoryName,
    steps: Annotated[int, typer.Option(help="Length of one run, in updates.")],
    lr: Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="Bounds of the learning rate.")],
    cost: Annotated[
        float | None,
        typer.Option(help="Steps of all forks together, in runs.", show_default="2.3; greedy: 5, one run per fork"),
    ] = None,
    preset: Annotated[Preset, typer.Option(help="greedy is Algorithm 1 of the paper.")] = Preset.horizon,
    mode: Annotated[Mode, typer.Option(help="Whether small or large values are good.")] = Mode.min,
    seed: Seed = 0,
    study: Annotated[
        Path | None,
        typer.Option(
            help="Folder to keep the study in; one that is there is continued.", show_default="runs/MODULE-FACTORY"
        ),
    ] = None,
    runner: Annotated[
        Where, typer.Option(help="Forks in turn here, side by side on one GPU, or on a Ray cluster.")
    ] = Where.local,
    forks: Annotated[
        int | None, typer.Option(help="streams: forks side by side.", show_default="as many as fit")
    ] = None,
    cpus: Annotated[float | None, typer.Option(help="ray: CPUs of one fork.", show_default="1")] = None,
    gpus: Annotated[
        float | None, typer.Option(help="ray: GPUs of one fork, 0.5 shares one.", show_default="none")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="ray: the cluster.", show_default="RAY_ADDRESS, one that runs here, or a new one")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(help="ray: shared folder or URL to keep checkpoints in.", show_default="the study's folder"),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Tune the learning rate of a training by forking it as it runs. The same command continues a study."""
    folder = study or Path("runs") / factory.replace(":", "-")
    with _readable():
        from paceline.factory import load_factory
        from paceline.strategy import Goal
        from paceline.traces import LearningRateRange, Objective

        strategy = _strategy(preset, cost)
        goal = Goal(LearningRateRange.of(lr), steps, strategy.objective(Objective(mode.value)), seed)
        total = strategy.total_steps(goal)
        make_training = load_factory(factory)

        from paceline.runner import with_settings

        doing = with_settings(runner.value, forks=forks, cpus=cpus, gpus=gpus, address=address, storage=storage)

        from paceline.views.data import to_json
        from paceline.views.text import cost_in_words, make_console, result_in_words, share

        console = make_console()
        if not quiet and not json:
            before = _done(folder)
            done = f"; {share(before)} were done before" if before.forks else ""
            console.print(f"{folder}: {cost_in_words(total, steps)}{done}", soft_wrap=True)
        seconds = _run(make_training, goal, strategy, folder, doing, None if quiet or json else console)
        found = _done(folder)
        if json:
            typer.echo(json_module.dumps({"study": str(folder), **to_json(found), "seconds": seconds}))
        else:
            console.print(*result_in_words(found, folder), sep="\n", soft_wrap=True)


def _run(
    make_training: Callable[[], Any],
    goal: "Goal",
    strategy: "Strategy",
    folder: Path,
    runner: "str | Callable[[Factories], Runner]",
    console: "Console | None",
) -> dict[str, float]:
    """Tune, shown on a console or not at all; Ctrl-C says how to go on. Seconds by what they were spent on."""
    from paceline.study import read_journal
    from paceline.tuner import tune as run
    from paceline.views.live import watcher

    try:
        with watcher(console, read_journal(folder / "journal.jsonl")) as view:
            return run(
                make_training,
                steps=goal.steps,
                lr=goal.lr_range,
                strategy=strategy,
                mode=goal.objective.mode,
                study=folder,
                seed=goal.seed,
                runner=runner,
                on_event=view.on_event,
                on_step=view.on_step,
            ).seconds
    except InputError as error:
        raise _with_settings(error, folder) from error
    except KeyboardInterrupt:
        _say_how_to_continue(folder)
        raise typer.Exit(130) from None


def _done(folder: Path) -> "StudyView":
    """What the journal of a study holds, nothing where there is none yet."""
    from paceline.study import read_journal
    from paceline.views.data import read

    return read(read_journal(folder / "journal.jsonl"))


def _strategy(preset: Preset, cost: float | None) -> "Strategy":
    from paceline.strategy import Dynamic, horizon

    if preset is Preset.horizon:
        return horizon(2.3 if cost is None else cost)
    forks = 5 if cost is None else int(cost)
    if forks < 1:
        raise InputError(f"greedy runs whole forks side by side, one per unit of cost, got {cost}: pass 1 or more")
    return Dynamic.greedy(forks=forks)


def _with_settings(error: InputError, folder: Path) -> InputError:
    """Where a study was made with other settings, say which."""
    if "other settings" not in str(error):
        return error
    from paceline.study import Study

    s = Study.open(folder).settings
    low, high = s["lr"]
    asked = f"--steps {s['steps']} --lr {low:g} {high:g} --mode {s['mode']} --seed {s['seed']}"
    cost = s["total_steps"] / s["steps"]
    return InputError(f"{error}. It was made with {asked} and takes {cost:.3g} runs' worth of steps (--cost, --preset)")


def _say_how_to_continue(folder: Path) -> None:
    from paceline.views.text import share

    program = "python -m paceline" if Path(sys.argv[0]).name == "__main__.py" else "paceline"
    _say(f"\nstopped after {share(_done(folder))}; all of them are kept in {folder}")
    _say(f"continue with: {program} {shlex.join(sys.argv[1:])}")


def _opened(study: Path) -> "StudyView":
    """A study as it stands, also one that is running."""
    from paceline.study import Study
    from paceline.views.data import read

    return read(Study.open(study).events)


@app.command()
def show(study: StudyPath, json: Json = False) -> None:
    """Show a study: settings, forks, decisions and the result. One that is running too."""
    with _readable():
        view = _opened(study)
        if json:
            from paceline.views.data import to_json

            typer.echo(json_module.dumps({"study": str(study), **to_json(view)}))
            return
        from paceline.views.text import make_console, study_page

        make_console().print(study_page(view, study))


@app.command()
def export(
    study: StudyPath,
    format: Annotated[Format, typer.Option(help="json keeps the structure; python is a function.")] = Format.json,  # noqa: A002
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write.", show_default="stdout")] = None,
) -> None:
    """Write the schedule that a study found: as JSON, as a table, or as a Python function that needs no paceline."""
    with _readable():
        from paceline.views.export import as_csv, as_python

        view = _opened(study)
        best = _best(view, study)
        origin = f"fork {best.fork} of the study {study}" + ("" if view.finished else ", not over")
        text = {
            Format.json: lambda: json_module.dumps(best.schedule.to_json(), indent=1) + "\n",
            Format.csv: lambda: as_csv(best.schedule),
            Format.python: lambda: as_python(best.schedule, origin),
        }[format]()
        if output is None:
            typer.echo(text, nl=False)
        else:
            output.write_text(text)
            _say(f"wrote {output}: {origin}")


def _best(view: "StudyView", study: Path) -> "ForkView":
    """The fork that won, or the one that leads, and then says so."""
    best = view.best
    if best is None:
        why = "every fork failed" if view.finished is not None else "nothing has been observed yet"
        raise InputError(f"{study} has no schedule to offer: {why}")
    if view.finished is None:
        from paceline.views.text import share

        _say(f"note: {study} is not over, {share(view)} are done: this is its best fork so far, {best.fork}")
    return best


@app.command()
def replay(study: StudyPath, factory: FactoryName, json: Json = False) -> None:
    """Train once, from the start, under the schedule that a study found, and compare with what its winner saw."""
    with _readable():
        from paceline.factory import load_factory

        view = _opened(study)
        best = _best(view, study)
        make_training = load_factory(factory)

        from paceline.replay import comparison, replayed
        from paceline.views.text import make_console, schedule_in_words

        console = make_console()
        if not json:
            console.print(f"training {best.schedule.steps:,} steps: {schedule_in_words(best.schedule)}", soft_wrap=True)
        again = replayed(make_training, best.schedule, None if json else console)
        if json:
            from paceline.views.data import finite_or_none

            steps, values = view.whole_run(best.fork)
            seen = {"fork": best.fork, "steps": steps, "values": values}
            now = {"steps": again.steps, "values": finite_or_none(again.values)}
            typer.echo(json_module.dumps({"study": seen, "replay": now}))
        else:
            console.print(comparison(view, best.fork, again))


@app.command()
def plan(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE", help="Runs of one model: studies, CSV files, TensorBoard logs."),
    ],
    steps: Annotated[
        int | None, typer.Option(help="Length of the run to plan, in updates.", show_default="as the longest run")
    ] = None,
    lr: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="Bounds of the learning rate.",
            show_default="up to the highest rate that worked",
        ),
    ] = None,
    family: Annotated[
        Family,
        typer.Option(help="shape: warm-up, hold and decay; multipliers: of a base, on intervals; free: rates on them."),
    ] = Family.shape,
    quantile: Annotated[float, typer.Option(help="Of the final value; below 0.5 is more careful.")] = 0.5,
    step_column: Annotated[str | None, typer.Option(help="Column of the step.", show_default="by its name")] = None,
    lr_column: Annotated[
        str | None,
        typer.Option(help="Column or tag of the rate; or the rate, if it was not logged.", show_default="by its name"),
    ] = None,
    value_column: Annotated[
        str | None, typer.Option(help="Column or tag of the value.", show_default="a loss, by its name")
    ] = None,
    mode: Annotated[Mode, typer.Option(help="Whether small or large values are good; a study knows.")] = Mode.min,
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write the schedule to, as JSON.")] = Path(
        "schedule.json"
    ),
    figure: Annotated[Path | None, typer.Option(help="Picture to draw.", show_default="none")] = None,
    json: Json = False,
) -> None:
    """Plan the next run of a model from what was recorded of others: a schedule, and what to expect of it."""
    with _readable():
        from paceline.views.planned import check_picture, draw_plan, plan_json, plan_page

        if figure is not None:
            check_picture(figure)

        from paceline.planning import plan_from

        view = plan_from(
            sources,
            steps=steps,
            lr=lr,
            family=family.value,
            quantile=quantile,
            step=step_column,
            rate=lr_column,
            value=value_column,
            mode=mode.value,
        )
        for path in filter(None, (out, figure)):
            path.parent.mkdir(parents=True, exist_ok=True)
        view.schedule.save(out)
        if figure is not None:
            draw_plan(view, figure)
        if json:
            typer.echo(json_module.dumps({"out": str(out), **plan_json(view)}))
            return
        from paceline.views.text import make_console

        console = make_console()
        console.print(plan_page(view), soft_wrap=not console.is_terminal)
        console.print(f"\nschedule: {out}", soft_wrap=True)
        if figure is not None:
            console.print(f"figure: {figure}", soft_wrap=True)
        load = f"lambda_lr(optimizer, paceline.Schedule.load({str(out)!r}))"
        console.print(f"to use it: from paceline.integrations import lambda_lr; {load}", soft_wrap=True)


@app.command()
def demo(seed: Seed = 0, steps: Annotated[int, typer.Option(help="Length of one run, in updates.")] = 2500) -> None:
    """Tune a small network on handwritten digits, and compare with fixed schedules at the same budget: a minute."""
    with _readable():
        from paceline.demo import demonstrate

        demonstrate(steps=steps, seed=seed)
