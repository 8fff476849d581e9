"""`paceline tasks`: schedules for a family of tasks."""

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from paceline.cli.app import app, readable
from paceline.cli.bounds import WithBounds
from paceline.cli.options import (
    Address,
    Better,
    Bounds,
    Cpus,
    Forks,
    Gpus,
    Json,
    Mode,
    OnWhat,
    Quiet,
    Seed,
    Steps,
    Storage,
    StudyFolder,
    TasksName,
    Weights,
    Where,
)
from paceline.cli.reading import done, say_how_to_continue
from paceline.errors import InputError


@app.command(cls=WithBounds)
def tasks(
    family: TasksName,
    steps: Steps,
    lr: Bounds,
    intervals: Annotated[int, typer.Option(help="Intervals of a schedule.")] = 5,
    initial: Annotated[
        int | None, typer.Option(help="First runs, by design.", show_default="one for each task without known runs")
    ] = None,
    budget: Annotated[int, typer.Option(help="Runs in all, the first ones included.")] = 20,
    batch: Annotated[int, typer.Option(help="Runs at once.")] = 1,
    base: Annotated[
        str,
        typer.Option(
            help="constant tunes a rate per interval; horizon, linear, cosine, ... multipliers of that shape."
        ),
    ] = "constant",
    known: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=STUDY", help="Runs made before, as a task of this name; may be given several times."
        ),
    ] = None,
    answer_alpha: Annotated[float, typer.Option(help="Quantile of the answers; below 0.5 is careful.")] = 0.3,
    of: Annotated[
        Weights | None, typer.Option(help="Weights that are judged.", show_default="raw; averaged with a base")
    ] = None,
    mode: Better = Mode.min,
    seed: Seed = 0,
    study: StudyFolder = None,
    runner: OnWhat = Where.local,
    forks: Forks = None,
    cpus: Cpus = None,
    gpus: Gpus = None,
    address: Address = None,
    storage: Storage = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find a schedule for each task of a family with few runs of some of them. The same command continues a study."""
    folder = study or Path("runs") / family.replace(":", "-")
    with readable():
        from paceline.factory import load_tasks
        from paceline.views.data import to_json
        from paceline.views.family import runs_in_words
        from paceline.views.text import make_console, result_in_words
        from paceline.views.words import share

        factories = load_tasks(family)

        from paceline.runner import with_settings

        doing = with_settings(runner.value, forks=forks, cpus=cpus, gpus=gpus, address=address, storage=storage)
        console = make_console()
        if not quiet and not json:
            before = done(folder)
            so_far = f"; {share(before)} were done before" if before.forks else ""
            words = f"{len(factories)} tasks, {runs_in_words(budget, steps)}"
            console.print(f"{folder}: {words}{so_far}", soft_wrap=True)
        settings: dict[str, Any] = {
            "intervals": intervals,
            "initial": initial,
            "budget": budget,
            "batch": batch,
            "base": base,
            "known": _sources(known or []),
            "answer_alpha": answer_alpha,
            "of": None if of is None else of.value,
            "mode": mode.value,
            "seed": seed,
            "runner": doing,
        }
        _run(factories, steps, lr, folder, None if quiet or json else console, settings)
        found = done(folder)
        if json:
            typer.echo(json_module.dumps({"study": str(folder), **to_json(found)}))
        else:
            for line in result_in_words(found, folder):
                console.print(line, soft_wrap=isinstance(line, str))


def _sources(known: list[str]) -> dict[str, str]:
    """NAME=STUDY, several times."""
    found: dict[str, str] = {}
    for entry in known:
        name, equals, path = entry.partition("=")
        if not (equals and name and path):
            raise InputError(f"expected --known NAME=STUDY, got {entry!r}: write --known old=runs/old")
        if name in found:
            raise InputError(f"expected each name of --known once, got {name!r} twice: rename one")
        found[name] = path
    return found


def _run(
    factories: dict[str, Any],
    steps: int,
    lr: tuple[float, float],
    folder: Path,
    console: Any,
    settings: dict[str, Any],
) -> None:
    """Tune, shown on a console or not at all; Ctrl-C says how to go on."""
    from paceline.study import read_journal
    from paceline.tuner import tune_tasks
    from paceline.views.live import watcher

    try:
        with watcher(console, read_journal(folder / "journal.jsonl")) as view:
            tune_tasks(
                factories,
                steps=steps,
                lr=lr,
                study=folder,
                on_event=view.on_event,
                on_step=view.on_step,
                **settings,
            )
    except InputError as error:
        raise _with_settings(error, folder) from error
    except KeyboardInterrupt:
        say_how_to_continue(folder)
        raise typer.Exit(130) from None


def _with_settings(error: InputError, folder: Path) -> InputError:
    """Where a study was made with other settings, say which."""
    if "other settings" not in str(error):
        return error
    from paceline.study import Study

    s = Study.open(folder).settings
    strategy = s.get("strategy", {})
    if not s.get("tasks"):
        return InputError(f"{error}. It is a study of one run, made with `paceline tune`")
    low, high = s["lr"]
    known = "".join(f" --known {name}={path}" for name, path in strategy.get("known", {}).items())
    return InputError(
        f"{error}. It was made with --steps {s['steps']} --lr {low:g} {high:g} --intervals {strategy['intervals']} "
        f"--budget {strategy['budget']} --batch {strategy['batch']} --base {strategy['base']['name']} "
        f"--mode {s['mode']} --seed {s['seed']}{known} for the tasks {', '.join(s['tasks'])}"
    )
