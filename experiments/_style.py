"""How figures of experiments look: quiet, readable in print, told apart by the colour-blind."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

OKABE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]  # Okabe and Ito's colours
GREY = "0.6"
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
}


@contextmanager
def drawing() -> Generator[None]:
    """Draw in this style, into files."""
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE, "backend": "agg"}):
        yield


def save(figure: plt.Figure, path: Path) -> None:
    """Write a figure, and let go of it."""
    figure.savefig(path)
    plt.close(figure)
