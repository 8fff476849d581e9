"""`paceline tasks`: schedules for a family of tasks."""

from pathlib import Path
from typing import Annotated, Any

import typer

from paceline.cli.application import app, print_json, report_errors
from paceline.cli.lr_option import CommandWithLr
from paceline.cli.options import (
    AddressOption,
    CpusOption,
    ForksOption,
    GpusOption,
    JsonOption,
    LrOption,
    ModeName,
    ModeOption,
    QuietOption,
    RetriesOption,
    RunnerName,
    RunnerOption,
    SeedOption,
    StepsOption,
    StorageOption,
    StudyOption,
    TasksArgument,
)
from paceline.cli.settings_options import settings_arguments, settings_values, with_settings_options
from paceline.cli.study_loading import journal_view, print_how_to_continue
from paceline.errors import InputError, OtherSettingsError
from paceline.settings import FamilySettings

KnownOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=STUDY", help="Runs made before, as a task of this name; may be given several times."),
]

AtOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME:KEY=NUMBER,...", help="Known coordinates of a task, such as half:rows=30000; once for each task."
    ),
]
CostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        metavar="NAME=NUMBER",
        help="Cost of a run of a task, once for each task. The budget is then in the same unit.",
    ),
]
WantedOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A task whose schedule is wanted; may be given several times. By default all."),
]


@app.command(cls=CommandWithLr)
@with_settings_options(FamilySettings, after="lr")
def tasks(
    family: TasksArgument,
    steps: StepsOption,
    lr: LrOption,
    known: KnownOption = None,
    at: AtOption = None,
    costs: CostOption = None,
    wanted: WantedOption = None,
    mode: ModeOption = ModeName.min,
    seed: SeedOption = 0,
    study: StudyOption = None,
    runner: RunnerOption = RunnerName.local,
    forks: ForksOption = None,
    cpus: CpusOption = None,
    gpus: GpusOption = None,
    address: AddressOption = None,
    storage: StorageOption = None,
    retries: RetriesOption = 1,
    quiet: QuietOption = False,
    json: JsonOption = False,
    **settings: Any,
) -> None:
    """Find a schedule for each task of a family with few runs of some of them. The same command continues a study."""
    folder = study or Path("runs") / family.replace(":", "-")
    with report_errors():
        from paceline.factory import load_tasks
        from paceline.views import describe_budget, describe_result, format_progress, make_console, study_json

        factories = load_tasks(family)

        from paceline.runner import with_settings

        make_runner = with_settings(runner.value, forks=forks, cpus=cpus, gpus=gpus, address=address, storage=storage)
        console = make_console()
        chosen = FamilySettings(
            **settings_values(settings),
            at=_parse_at(at or []),
            costs=_parse_costs(costs or []),
            wanted=wanted or None,
        )
        if not quiet and not json:
            before = journal_view(folder)
            progress = f"; {format_progress(before)} were done before" if before.forks else ""
            budget = f"{len(factories)} tasks, {describe_budget(chosen.budget, steps, chosen.costs)}"
            console.print(f"{folder}: {budget}{progress}", soft_wrap=True)
        asked: dict[str, Any] = {
            "steps": steps,
            "lr": lr,
            "known": _parse_known(known or []),
            "mode": mode.value,
            "seed": seed,
            "retries": retries,
            "runner": make_runner,
            "settings": chosen,
        }
        _run(factories, folder, None if quiet or json else console, asked)
        view = journal_view(folder)
        if json:
            print_json({"study": str(folder), **study_json(view)})
        else:
            for line in describe_result(view, folder):
                console.print(line, soft_wrap=isinstance(line, str))


def _parse_known(entries: list[str]) -> dict[str, str]:
    """NAME=STUDY, several times."""
    sources: dict[str, str] = {}
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not (equals and name and path):
            raise InputError(f"expected --known NAME=STUDY, got {entry!r}: write --known old=runs/old")
        if name in sources:
            raise InputError(f"expected each name of --known once, got {name!r} twice: rename one")
        sources[name] = path
    return sources


def _parse_at(entries: list[str]) -> dict[str, dict[str, float]] | None:
    """NAME:KEY=NUMBER,KEY=NUMBER, several times; None if there are none."""
    at: dict[str, dict[str, float]] = {}
    for entry in entries:
        name, colon, pairs = entry.rpartition(":")
        if not (colon and name):
            raise InputError(f"expected --at NAME:KEY=NUMBER, got {entry!r}: write --at half:rows=30000")
        at[name] = dict(_named_number("--at NAME:KEY=NUMBER", pair) for pair in pairs.split(","))
    return at or None


def _parse_costs(entries: list[str]) -> dict[str, float] | None:
    """NAME=NUMBER, several times; None if there are none."""
    return dict(_named_number("--cost NAME=NUMBER", entry) for entry in entries) or None


def _named_number(expected: str, pair: str) -> tuple[str, float]:
    name, _, text = pair.rpartition("=")
    try:
        return name, float(text)
    except ValueError as error:
        raise InputError(f"expected {expected}, got {pair!r}: write a number after the sign =") from error


def _run(factories: dict[str, Any], folder: Path, console: Any, asked: dict[str, Any]) -> None:
    """Tune, shown on a console or not at all; Ctrl-C prints how to continue."""
    from paceline.study import read_journal
    from paceline.tuner import tune_tasks
    from paceline.views import progress_display

    try:
        with progress_display(console, read_journal(folder / "journal.jsonl")) as view:
            tune_tasks(factories, study=folder, on_event=view.on_event, on_step=view.on_step, quiet=True, **asked)
    except OtherSettingsError as error:
        raise _with_command(error, folder) from error
    except KeyboardInterrupt:
        print_how_to_continue(folder)
        raise typer.Exit(130) from None


def _with_command(error: OtherSettingsError, folder: Path) -> InputError:
    """The error, with the command line that the study was made with."""
    from paceline.study import Study

    asked = Study.open(folder).settings
    strategy = asked.get("strategy", {})
    if not asked.get("tasks"):
        return InputError(f"{error}. It is a study of one run, made with `paceline tune`")
    low, high = asked["lr"]
    settings = settings_arguments(FamilySettings, {**strategy, "base": strategy["base"]["name"]})
    known = "".join(f" --known {name}={path}" for name, path in strategy.get("known", {}).items())
    for task, given in strategy.get("at", {}).items():
        known += f" --at {task}:{','.join(f'{name}={value:.12g}' for name, value in given.items())}"
    known += "".join(f" --cost {task}={cost:.12g}" for task, cost in strategy.get("costs", {}).items())
    known += "".join(f" --wanted {task}" for task in strategy.get("wanted", []))
    return InputError(
        f"{error}. It was made with --steps {asked['steps']} --lr {low:g} {high:g} {settings} "
        f"--mode {asked['mode']} --seed {asked['seed']}{known} for the tasks {', '.join(asked['tasks'])}"
    )
