"""Tables of the CIFAR-10 experiment: the price of a grid, verdicts, and the printed tables of the published results."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import _cifar_report as report

ROOT = Path(__file__).parents[2]


def test_the_price_of_a_grid_is_that_of_the_best_of_so_many_on_validation() -> None:
    def end(error: float, accuracy: float) -> dict[int, report.End]:
        values = {"raw": {"validation error": error, "test accuracy": accuracy}}
        return {0: report.End("", 0, 1.0, "raw", values)}

    groups = {"a": end(0.1, 0.9), "b": end(0.2, 0.8), "c": end(0.3, 0.7)}
    assert report.grid_cost(groups, 0.79, 0) == 1  # the mean of all three is 0.8
    assert report.grid_cost(groups, 0.86, 0) == 2  # (2 * 0.9 + 0.8) / 3 = 0.867
    assert report.grid_cost(groups, 0.9, 0) == 3
    assert not report.grid_cost(groups, 0.91, 0) <= 3


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([0.1, 0.2, 0.3], "holds"),
        ([-0.1, -0.2, -0.3], "does not hold"),
        ([-0.1, 0.2, 0.1], "undecided"),
        ([0.1], "holds, one seed"),
    ],
)
def test_a_difference_within_two_standard_errors_is_undecided(gaps: list[float], expected: str) -> None:
    assert report.verdict(np.array(gaps)) == expected


def test_the_published_tables_are_printed_from_the_archive(tmp_path: Path) -> None:
    """`--show` prints what results/cifar.txt holds, to the last byte."""
    command = [sys.executable, "-c", SHOW, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "experiments" / "results" / "cifar.txt").read_text()


SHOW = """
import sys
from pathlib import Path
from experiments import _cifar_figures
from experiments.cifar import show
from experiments._cifar_results import CifarResults
drawn = []
_cifar_figures.save = lambda figure, path: drawn.append(path.name)
show(CifarResults())
assert len(drawn) == 8, drawn
"""
