"""`paceline demo`: tune a small network, and compare with fixed schedules."""

from paceline.cli.application import app, report_errors
from paceline.cli.options import SeedOption, StepsOption


@app.command()
def demo(seed: SeedOption = 0, steps: StepsOption = 2500) -> None:
    """Tune a small network on handwritten digits, and compare with fixed schedules at the same budget. One minute."""
    with report_errors():
        from paceline.demo import run_demo

        run_demo(steps=steps, seed=seed)
