"""Options and arguments that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class PresetName(StrEnum):
    """The ways to tune."""

    horizon = "horizon"
    greedy = "greedy"
    paper = "paper"


class RunnerName(StrEnum):
    """What forks run on. These are the names in `paceline.runner`, repeated here so that help does not import it."""

    local = "local"
    streams = "streams"
    ray = "ray"


class ModeName(StrEnum):
    """Whether small or large values are good."""

    min = "min"
    max = "max"


class WeightsName(StrEnum):
    """The weights that forks are compared by."""

    raw = "raw"
    averaged = "averaged"


class FormatName(StrEnum):
    """The format that a schedule is written in."""

    json = "json"
    csv = "csv"
    python = "python"


class PlanFamily(StrEnum):
    """The schedules that a plan is chosen from."""

    shape = "shape"
    multipliers = "multipliers"
    free = "free"


StudyArgument = Annotated[Path, typer.Argument(metavar="STUDY", help="The study's folder.")]
FactoryArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:FACTORY",
        help="A function, importable from this folder, that takes no arguments and returns a training.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
RetriesOption = Annotated[
    int,
    typer.Option(min=0, help="How often an interval is tried again after an exception that may not come again."),
]
SeedOption = Annotated[int, typer.Option(help="Of everything random.")]

StepsOption = Annotated[int, typer.Option(help="Length of one run, in updates.")]
LrOption = Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="Bounds of the learning rate.")]
ModeOption = Annotated[ModeName, typer.Option(help="Whether small or large values are good.")]
StudyOption = Annotated[
    Path | None,
    typer.Option(help="Folder of the study; an existing one is continued.", show_default="runs/MODULE-NAME"),
]
RunnerOption = Annotated[
    RunnerName, typer.Option(help="Forks in turn here, side by side on one GPU, or on a Ray cluster.")
]
ForksOption = Annotated[int | None, typer.Option(help="streams: forks side by side.", show_default="as many as fit")]
CpusOption = Annotated[float | None, typer.Option(help="ray: CPUs of one fork.", show_default="1")]
GpusOption = Annotated[float | None, typer.Option(help="ray: GPUs of one fork, 0.5 shares one.", show_default="none")]
AddressOption = Annotated[
    str | None, typer.Option(help="ray: the cluster.", show_default="RAY_ADDRESS, one that runs here, or a new one")
]
StorageOption = Annotated[
    str | None,
    typer.Option(help="ray: shared folder or URL to keep checkpoints in.", show_default="the study's folder"),
]
TaskOption = Annotated[str | None, typer.Option(metavar="NAME", help="Which task, of a family.")]
TasksArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:TASKS",
        help="A dict of names and functions that each return a training, or a function that returns such a dict.",
    ),
]
