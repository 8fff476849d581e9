"""Runs under two cosines, with a loss in closed form: what tests of plans have recorded."""

from pathlib import Path

import numpy as np

from paceline.traces import Schedule

STEPS = np.arange(10, 401, 10)
COSINES = [Schedule.of("cosine", peak, 400) for peak in (0.01, 0.1)]


def losses(schedule: Schedule) -> np.ndarray:
    """A loss that falls with the sum of the rates, and is higher while the rate is."""
    return 0.2 + (1 + np.cumsum(schedule(np.arange(400)))) ** -0.7 + 2 * schedule(np.arange(400)) ** 0.8


def write_table(path: Path) -> Path:
    """Both runs as one CSV file."""
    rows = [f"{i},{s},{run(s - 1)},{losses(run)[s - 1]}" for i, run in enumerate(COSINES) for s in STEPS.tolist()]
    path.write_text("\n".join(["run,step,lr,loss", *rows]))
    return path
