"""The demo: tune a small network on handwritten digits, then try fixed schedules at the same budget.

All of them use the same loop, bounds and seed. Each kind of fixed schedule gets as many whole runs as the budget pays
for, rounded up, at peaks on a grid, and its best run counts. The outcome is printed as it is.
"""

import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

from paceline.problems import digits_training
from paceline.shapes import Constant, Cosine, OneCycle
from paceline.strategy import Dynamic, FixedSchedules, Strategy
from paceline.study import Study
from paceline.tuner import tune
from paceline.views import (
    StudyView,
    format_cost,
    format_number,
    format_schedule,
    make_console,
    progress_display,
    study_view,
)

FOLDER, TUNED, BOUNDS, COST = Path("runs") / "demo", "paceline", (1e-4, 1e-1), 2.3
FIXED = {"constant": Constant(), "cosine": Cosine(), "one-cycle": OneCycle()}
WEIGHTS = ("raw", "averaged")
TUNERS_OWN = ("decide", "journal", "checkpoint", "measure")  # the plain runs train, load and evaluate too


class DemoStudy(NamedTuple):
    """A study of the demo: what it found, and the seconds that it took, by purpose and in all."""

    name: str
    view: StudyView
    seconds_by_purpose: dict[str, float]
    seconds: float

    @property
    def final_values(self) -> dict[str, float]:
        """Final values by weights: of the winner of a tuned run, or of the best of several whole runs."""
        if self.name == TUNED and self.view.best is not None:
            return self.view.best.last_values
        runs = [fork.last_values for fork in self.view.forks if fork.state in ("won", "ended")]
        return {weights: min(values[weights] for values in runs) for weights in WEIGHTS}


def run_demo(*, steps: int, seed: int) -> None:
    """Run the demo and print the outcome."""
    console = make_console()
    for name in (TUNED, *FIXED):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    strategy, runs = Dynamic.horizon(cost=COST), ceil(COST)
    total = strategy.plan.total_steps(steps)
    console.print(f"A network on scikit-learn's digits, {steps:,} updates of Adam a run, validation loss, seed {seed}.")
    with _one_thread():
        console.print(f"1. One run tuned on the fly between {BOUNDS[0]} and {BOUNDS[1]}: {format_cost(total, steps)}")
        tuned = _run_study(console, TUNED, strategy, steps, seed)
        console.print(f"2. Fixed schedules at that budget, rounded up: {runs} runs each, peaks on a grid, best kept")
        fixed = [
            _run_study(console, name, FixedSchedules((shape,), runs=runs), steps, seed) for name, shape in FIXED.items()
        ]
    console.print("", _table([tuned, *fixed]), "", *_summary(tuned, fixed), *_files(tuned, fixed), sep="\n")


@contextmanager
def _one_thread() -> Generator[None]:
    """Use one thread, since network and model are too small to share. Slow imports are done before the clock starts."""
    digits_training()
    import_module("scipy.optimize")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _run_study(console: Console, name: str, strategy: Strategy, steps: int, seed: int) -> DemoStudy:
    """Run a strategy and show its progress."""
    start = time.perf_counter()
    with progress_display(console, title=name) as display:
        result = tune(
            partial(digits_training, seed),
            steps=steps,
            lr=BOUNDS,
            strategy=strategy,
            study=FOLDER / name,
            seed=seed,
            on_event=display.on_event,
            on_step=display.on_step,
            quiet=True,
            keep="last",  # as the fixed schedules are judged, by where they end
        )
    seconds = time.perf_counter() - start
    return DemoStudy(name, study_view(Study.open(FOLDER / name).events), result.seconds, seconds)


def _table(studies: list[DemoStudy]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("final validation loss")
    for name in ("raw weights", "averaged weights", "total steps", "seconds"):
        table.add_column(name, justify="right")
    for study in studies:
        values = [format_number(study.final_values[weights]) for weights in WEIGHTS]
        style = "bold" if study.name == TUNED else ""
        table.add_row(study.name, *values, f"{study.view.done_steps:,}", f"{study.seconds:.1f}", style=style)
    return table


def _summary(tuned: DemoStudy, fixed: list[DemoStudy]) -> list[str]:
    """Which one ended best, and how long the tuner itself took."""
    lines = [f"schedule found: {format_schedule(tuned.view.best.schedule)}"] if tuned.view.best is not None else []
    for weights in WEIGHTS:
        best = min(fixed, key=lambda study: study.final_values[weights])
        change = tuned.final_values[weights] / best.final_values[weights] - 1
        side = "below" if change < 0 else "above"
        line = f"{weights} weights: {TUNED} ended {abs(change):.0%} {side} the best fixed schedule, {best.name}"
        lines.append(line.replace("%", " %"))
    own = {purpose: seconds for purpose, seconds in tuned.seconds_by_purpose.items() if purpose in TUNERS_OWN}
    decisions = len(tuned.view.decisions)
    parts = ", ".join(f"{purpose} {seconds:.2f} s" for purpose, seconds in own.items())
    lines.append(
        "This is one seed of a small problem with 450 validation images. Others can end differently (--seed 1)."
    )
    lines.append(
        f"The tuner's own time: {parts}: {sum(own.values()) / tuned.seconds:.1%} of its run, "
        f"{1000 * own['decide'] / decisions:.0f} ms a decision ({decisions} decisions)".replace("%", " %")
    )
    return lines


def _files(tuned: DemoStudy, fixed: list[DemoStudy]) -> list[str]:
    """Draw the figure if plotly is installed, and name the files to open."""
    lines = [f"study: {FOLDER / TUNED} (paceline show {FOLDER / TUNED})"]
    if find_spec("plotly") is None:
        return [*lines, "figure: none, it needs pip install 'paceline[plot]'"]
    from paceline.views import comparison, write_figure

    path = FOLDER / "tuned_digits.html"
    write_figure(comparison(tuned.view, {study.name: study.view for study in fixed}), path)
    return [*lines, f"figure: {path} (open it in a browser)"]
