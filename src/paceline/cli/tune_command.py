"""`paceline tune`: tune the learning rate of one training while it runs."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli.application import app, print_json, report_errors
from paceline.cli.lr_option import CommandWithLr
from paceline.cli.options import (
    AddressOption,
    CpusOption,
    FactoryArgument,
    ForksOption,
    GpusOption,
    JsonOption,
    LrOption,
    ModeName,
    ModeOption,
    PresetName,
    QuietOption,
    RetriesOption,
    RunnerName,
    RunnerOption,
    SeedOption,
    StepsOption,
    StorageOption,
    StudyOption,
)
from paceline.cli.study_loading import journal_view, print_how_to_continue
from paceline.errors import InputError, OtherSettingsError

if TYPE_CHECKING:
    from rich.console import Console

    from paceline.runner import Factories, Runner
    from paceline.strategy import Goal, Strategy


@app.command(cls=CommandWithLr)
def tune(
    factory: FactoryArgument,
    steps: StepsOption,
    lr: LrOption,
    cost: Annotated[
        float | None,
        typer.Option(
            help="Steps of all forks together, in runs.", show_default="2.3; greedy and paper: 5, one run per fork"
        ),
    ] = None,
    preset: Annotated[
        PresetName, typer.Option(help="paper is Algorithm 1 of the paper, greedy is our version of it.")
    ] = PresetName.horizon,
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
) -> None:
    """Tune the learning rate of a training by forking it as it runs. The same command continues a study."""
    folder = study or Path("runs") / factory.replace(":", "-")
    with report_errors():
        from paceline.factory import load_factory
        from paceline.strategy import Goal
        from paceline.traces import LearningRateRange, Objective

        strategy = _strategy(preset, cost)
        goal = Goal(LearningRateRange.of(lr), steps, strategy.objective(Objective(mode.value)), seed)
        total = strategy.total_steps(goal)
        make_training = load_factory(factory)

        from paceline.runner import with_settings

        make_runner = with_settings(runner.value, forks=forks, cpus=cpus, gpus=gpus, address=address, storage=storage)

        from paceline.views import describe_result, format_cost, format_progress, make_console, study_json

        console = make_console()
        if not quiet and not json:
            before = journal_view(folder)
            progress = f"; {format_progress(before)} were done before" if before.forks else ""
            if not before.forks or (before.total_steps, before.steps) == (total, steps):  # others are refused below
                console.print(f"{folder}: {format_cost(total, steps)}{progress}", soft_wrap=True)
        seconds = _run(make_training, goal, strategy, folder, make_runner, retries, None if quiet or json else console)
        view = journal_view(folder)
        if json:
            print_json({"study": str(folder), **study_json(view), "seconds": seconds})
        else:
            console.print(*describe_result(view, folder), sep="\n", soft_wrap=True)


def _run(
    make_training: Callable[[], Any],
    goal: "Goal",
    strategy: "Strategy",
    folder: Path,
    runner: "str | Callable[[Factories], Runner]",
    retries: int,
    console: "Console | None",
) -> dict[str, float]:
    """Tune, with progress on a console if there is one. Ctrl-C prints how to continue.

    Returns:
        Seconds by what they were spent on.
    """
    from paceline.study import read_journal
    from paceline.tuner import tune as run
    from paceline.views import progress_display

    try:
        with progress_display(console, read_journal(folder / "journal.jsonl")) as view:
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
                retries=retries,
                quiet=True,
            ).seconds
    except OtherSettingsError as error:
        raise _with_settings(error, folder) from error
    except KeyboardInterrupt:
        print_how_to_continue(folder)
        raise typer.Exit(130) from None


def _strategy(preset: PresetName, cost: float | None) -> "Strategy":
    from paceline.strategy import Dynamic, default_strategy

    if preset is PresetName.horizon:
        return default_strategy(2.3 if cost is None else cost)
    forks = 5 if cost is None else int(cost)
    if forks < 1:
        raise InputError(f"{preset} runs whole forks side by side, one per unit of cost, got {cost}: pass 1 or more")
    return Dynamic.paper(forks=forks) if preset is PresetName.paper else Dynamic.greedy(forks=forks)


def _with_settings(error: OtherSettingsError, folder: Path) -> InputError:
    """The error, with the settings that the study was made with."""
    from paceline.study import Study

    study = Study.open(folder).settings
    low, high = study["lr"]
    settings = f"--steps {study['steps']} --lr {low:g} {high:g} --mode {study['mode']} --seed {study['seed']}"
    cost = study["total_steps"] / study["steps"]
    return InputError(
        f"{error}. It was made with {settings} and takes {cost:.3g} runs' worth of steps (--cost, --preset)"
    )
