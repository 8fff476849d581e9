"""`paceline demo`: the main job on a small problem."""

from typing import Annotated

import typer

from paceline.cli.app import app, readable
from paceline.cli.options import Seed


@app.command()
def demo(seed: Seed = 0, steps: Annotated[int, typer.Option(help="Length of one run, in updates.")] = 2500) -> None:
    """Tune a small network on handwritten digits, and compare with fixed schedules at the same budget: a minute."""
    with readable():
        from paceline.demo import run_demo

        run_demo(steps=steps, seed=seed)
