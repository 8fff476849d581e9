"""The main job on a real small problem: tune a network on handwritten digits, then fixed schedules at the same budget.

Everything runs through the same loop, with the same bounds and seed. The fixed schedules get as many whole runs as the
budget holds, rounded up, at peaks on a grid; the best of each is kept. What comes out is printed as it is.
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
from paceline.views.data import StudyView
from paceline.views.format import format_cost, format_number, format_schedule
from paceline.views.live import progress_display
from paceline.views.study_view import study_view
from paceline.views.text import make_console

FOLDER, TUNED, BOUNDS, COST = Path("runs") / "demo", "paceline", (1e-4, 1e-1), 2.3
FIXED = {"constant": Constant(), "cosine": Cosine(), "one-cycle": OneCycle()}


class Tried(NamedTuple):
    """One way to set the rate, and what came of it; seconds by what they were spent on, and in all."""

    name: str
    view: StudyView
    spent: dict[str, float]
    seconds: float

    @property
    def ends(self) -> dict[str, float]:
        """Final values: of the winner where runs were forked, else of the best run by these weights."""
        if self.name == TUNED and self.view.best is not None:
            return self.view.best.last_values
        runs = [fork.last_values for fork in self.view.forks if fork.state in ("won", "ended")]
        return {of: min(last[of] for last in runs) for of in ("raw", "averaged")}


def demonstrate(*, steps: int, seed: int) -> None:
    """Run the demo and print what came of it."""
    console = make_console()
    for name in (TUNED, *FIXED):
        shutil.rmtree(FOLDER / name, ignore_errors=True)
    strategy, runs = Dynamic.horizon(cost=COST), ceil(COST)
    total = strategy.plan.total_steps(steps)
    console.print(f"A network on scikit-learn's digits, {steps:,} updates of Adam a run, validation loss, seed {seed}.")
    with _one_thread():
        console.print(f"1. One run tuned on the fly between {BOUNDS[0]} and {BOUNDS[1]}: {format_cost(total, steps)}")
        tuned = _tried(console, TUNED, strategy, steps, seed)
        console.print(f"2. Fixed schedules at that budget, rounded up: {runs} runs each, peaks on a grid, best kept")
        fixed = [_tried(console, name, FixedSchedules((base,), runs=runs), steps, seed) for name, base in FIXED.items()]
    console.print("", _table([tuned, *fixed]), "", *_in_words(tuned, fixed), *_files(tuned, fixed), sep="\n")


@contextmanager
def _one_thread() -> Generator[None]:
    """One thread, since network and model are too small to share out; all that is loaded once is loaded before."""
    digits_training()
    import_module("scipy.optimize")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _tried(console: Console, name: str, strategy: Strategy, steps: int, seed: int) -> Tried:
    """Run a strategy with a view of it."""
    began = time.perf_counter()
    with progress_display(console, title=name) as view:
        result = tune(
            partial(digits_training, seed),
            steps=steps,
            lr=BOUNDS,
            strategy=strategy,
            study=FOLDER / name,
            seed=seed,
            on_event=view.on_event,
            on_step=view.on_step,
        )
    seconds = time.perf_counter() - began
    return Tried(name, study_view(Study.open(FOLDER / name).events), result.seconds, seconds)


def _table(tried: list[Tried]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    table.add_column("final validation loss")
    for name in ("raw weights", "averaged weights", "total steps", "seconds"):
        table.add_column(name, justify="right")
    for one in tried:
        ends = [format_number(one.ends[of]) for of in ("raw", "averaged")]
        style = "bold" if one.name == TUNED else ""
        table.add_row(one.name, *ends, f"{one.view.done_steps:,}", f"{one.seconds:.1f}", style=style)
    return table


def _in_words(tuned: Tried, fixed: list[Tried]) -> list[str]:
    """Who won, and what the tuner itself took."""
    lines = [f"what it found: {format_schedule(tuned.view.best.schedule)}"] if tuned.view.best is not None else []
    for of in ("raw", "averaged"):
        best = min(fixed, key=lambda one: one.ends[of])
        change = tuned.ends[of] / best.ends[of] - 1
        side = "below" if change < 0 else "above"
        words = f"{of} weights: {TUNED} ended {abs(change):.0%} {side} the best fixed schedule, {best.name}"
        lines.append(words.replace("%", " %"))
    own = {name: seconds for name, seconds in tuned.spent.items() if name != "training"}
    decisions = len(tuned.view.decisions)
    parts = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in own.items())
    lines.append("One seed of a small problem, judged on 450 images: other seeds can turn out otherwise (--seed 1).")
    lines.append(
        f"The tuner's own time: {parts}: {sum(own.values()) / tuned.seconds:.1%} of its run, "
        f"{1000 * own['decide'] / decisions:.0f} ms a decision ({decisions} decisions)".replace("%", " %")
    )
    return lines


def _files(tuned: Tried, fixed: list[Tried]) -> list[str]:
    """Draw the figure if plotly is installed, and name the files to open."""
    lines = [f"study: {FOLDER / TUNED} (paceline show {FOLDER / TUNED})"]
    if find_spec("plotly") is None:
        return [*lines, "figure: none, it needs pip install 'paceline[plot]'"]
    from paceline.views import comparison, write_figure

    path = FOLDER / "tuned_digits.html"
    write_figure(comparison(tuned.view, {one.name: one.view for one in fixed}), path)
    return [*lines, f"figure: {path} (open it in a browser)"]
