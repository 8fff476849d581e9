"""A mistake in a user's code comes back at once, as it was raised, whichever runner trains the forks.

Four mistakes (a wrong `view`, a missing key, a tensor on another device, a failing assertion), each in four places: the
factory, `loss`, `step`, `evaluate`. Bars, for each runner: the caller of `tune` gets the user's own exception, with the
user's own line; and one fork has tried. Ray trains forks side by side: as many may have begun as there are workers.
A worker's frames do not travel, so with Ray the line is in the text of the exception's cause.

Second table: an exception in a later interval of one fork is that fork's failure. The journal keeps its traceback, and
the study goes on.

Streams use a GPU if there is one, and else the stand-in of the tests, which does recorded work as it comes.
"""

import argparse
import logging
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks._mistaken_training import MISTAKES, PLACES, count, mark, training
from benchmarks._report import machine, print_results, result, table
from paceline import Schedule, tune
from paceline.runner import Streams
from paceline.study import Study
from paceline.training import RecordedTraining

RUNNERS = ("local", "streams", "ray")
STUDY: dict[str, Any] = {"steps": 80, "lr": (1e-4, 1e-1), "cost": 2.3, "quiet": True}
SLOTS = 2  # workers of the cluster


@contextmanager
def runner_of(name: str, folder: Path) -> Iterator[Any]:
    """A runner. What it trains side by side on a GPU is counted too."""
    if name == "ray":
        from paceline.runner import Ray

        yield partial(Ray, gpus=0)
    if name == "streams":
        begin = RecordedTraining.begin

        def counted(self: RecordedTraining, schedule: Schedule) -> None:
            mark(folder, "begun")
            begin(self, schedule)

        RecordedTraining.begin = counted
        try:
            yield Streams if torch.cuda.is_available() else partial(Streams, make_stream=stand_in())
        finally:
            RecordedTraining.begin = begin
    if name == "local":
        yield name


def stand_in() -> Any:
    """A stream without a GPU."""
    from tests.training.host_stream import HostWorkStream

    return HostWorkStream


def where_line_is(error: BaseException, line: str) -> str:
    """Where the user's line is shown: in the exception's traceback, or in the text of its cause."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(line in (frame.line or "") for frame in frames):
        return "traceback"
    return "cause" if line in "".join(traceback.format_exception(error)) else "no"


def raise_first(runner: str, place: str, mistake: Callable[[], None]) -> tuple[str, bool, str, int]:
    """Make a mistake in the first interval.

    Returns the type of what came back, whether it is the user's own, where the line is, and how many forks had begun.
    """
    wanted, line = MISTAKES[mistake]
    with tempfile.TemporaryDirectory() as name, runner_of(runner, folder := Path(name)) as made:
        try:
            tune(partial(training, folder, place, mistake), runner=made, **STUDY)
        except Exception as error:
            is_own = type(error) is wanted
            return type(error).__name__, is_own, where_line_is(error, line), count(folder, "begun")
    return "nothing", False, "no", -1


def raise_later(runner: str, mistake: Callable[[], None]) -> tuple[int, bool, bool]:
    """Make a mistake in a later interval of one fork.

    Returns how many forks failed, whether the journal has the line, and whether the study has a result.
    """
    with tempfile.TemporaryDirectory() as name, runner_of(runner, folder := Path(name)) as made:
        make = partial(training, folder, "evaluate", mistake, later=True)
        tuned = tune(make, runner=made, study=folder / "study", **STUDY)
        failures = [report.failure for report in Study.open(folder / "study").reports if report.failure is not None]
    return len(failures), all(MISTAKES[mistake][1] in f.traceback for f in failures), tuned.value is not None


def measure(runners: list[str]) -> None:
    """Make all mistakes, and print both tables."""
    first, later = list[list[object]](), list[list[object]]()
    for runner in runners:
        rows = [(place, mistake, raise_first(runner, place, mistake)) for place in PLACES for mistake in MISTAKES]
        for place, mistake, (kind, is_own, line, tried) in rows:
            name = mistake.__name__.replace("_", " ")
            first.append([runner, place, name, kind, "yes" if is_own else "NO", line, tried])
        result(f"mistakes_{runner}_own_exception", sum(is_own for _, _, (_, is_own, _, _) in rows))
        result(f"mistakes_{runner}_own_line", sum(line != "no" for _, _, (_, _, line, _) in rows))
        result(f"mistakes_{runner}_most_forks", max(tried for _, _, (_, _, _, tried) in rows))
        for mistake in MISTAKES:
            failures, has_line, ended = raise_later(runner, mistake)
            name = mistake.__name__.replace("_", " ")
            later.append([runner, name, failures, "yes" if has_line else "NO", "yes" if ended else "NO"])
    print(table(["runner", "mistake in", "mistake", "came back", "own", "line in", "forks begun"], first))
    print("\nin a later interval of one fork:")
    print(table(["runner", "mistake", "failures", "line in journal", "study went on"], later))


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # streams say that they go on as local, which a caller sees
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=list(RUNNERS))
    options = parser.parse_args()
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    print(f"{machine()}; {device}; {SLOTS} workers")
    if "ray" in options.runners:
        import ray

        ray.init(num_cpus=SLOTS, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    measure(options.runners)
    print_results()


if __name__ == "__main__":
    main()
