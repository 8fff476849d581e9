"""Options and arguments that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Preset(StrEnum):
    """The two ways to tune."""

    horizon = "horizon"
    greedy = "greedy"


class Where(StrEnum):
    """What forks run on: the names in `runner.named`, which a command line that is asked for help need not import."""

    local = "local"
    streams = "streams"
    ray = "ray"


class Mode(StrEnum):
    """Whether small or large values are good."""

    min = "min"
    max = "max"


class Weights(StrEnum):
    """Which weights are judged."""

    raw = "raw"
    averaged = "averaged"


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
        help="A function, importable from this folder, that takes no arguments and returns a training.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result only.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Seed = Annotated[int, typer.Option(help="Of everything random.")]

Steps = Annotated[int, typer.Option(help="Length of one run, in updates.")]
Bounds = Annotated[tuple[float, float], typer.Option(metavar="LOW HIGH", help="Bounds of the learning rate.")]
Better = Annotated[Mode, typer.Option(help="Whether small or large values are good.")]
StudyFolder = Annotated[
    Path | None,
    typer.Option(help="Folder to keep the study in; one that is there is continued.", show_default="runs/MODULE-NAME"),
]
OnWhat = Annotated[Where, typer.Option(help="Forks in turn here, side by side on one GPU, or on a Ray cluster.")]
Forks = Annotated[int | None, typer.Option(help="streams: forks side by side.", show_default="as many as fit")]
Cpus = Annotated[float | None, typer.Option(help="ray: CPUs of one fork.", show_default="1")]
Gpus = Annotated[float | None, typer.Option(help="ray: GPUs of one fork, 0.5 shares one.", show_default="none")]
Address = Annotated[
    str | None, typer.Option(help="ray: the cluster.", show_default="RAY_ADDRESS, one that runs here, or a new one")
]
Storage = Annotated[
    str | None,
    typer.Option(help="ray: shared folder or URL to keep checkpoints in.", show_default="the study's folder"),
]
TaskName = Annotated[str | None, typer.Option(metavar="NAME", help="Which task, of a family.")]
TasksName = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:TASKS",
        help="A dict of names and functions that each return a training, or a function that returns such a dict.",
    ),
]
