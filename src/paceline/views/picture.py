"""A picture of a tuned run against others, with matplotlib: losses above, rates below."""

from pathlib import Path
from typing import Any

import numpy as np

from paceline.views.data import ForkView, StudyView

# Okabe and Ito's colours, which people who are colour-blind can tell apart.
_WINNER, _FORK, _OTHERS = "#0072B2", "#999999", ("#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")


def draw(tuned: StudyView, others: dict[str, StudyView], path: Path, *, of: str = "averaged") -> None:
    """Draw all forks of a study, its winner bold, and the best run of each of the others.

    Args:
        tuned: a study that is over.
        others: studies to compare with, by name.
        path: the file to write.
        of: the weights whose value is drawn.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 6), layout="constrained")
    axes: Any = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for fork in tuned.forks:
        _line(axes, fork, fork.steps, fork.values.get(of, ()), color=_FORK, lw=0.9)
    axes[0].plot([], [], color=_FORK, lw=0.9, label=f"the other {len(tuned.forks) - 1} forks")
    for (name, view), colour in zip(others.items(), _OTHERS, strict=False):
        if (best := view.best) is not None:
            label = f"best {name} of {len(view.forks)}"
            _line(axes, best, *_run(view, best, of), color=colour, lw=1.4, label=label)
    if (best := tuned.best) is not None:
        _line(axes, best, *_run(tuned, best, of), color=_WINNER, lw=2.8, label="tuned by paceline")
    axes[0].set(yscale="log", ylabel=f"validation loss, {of} weights")
    axes[0].legend(frameon=False)
    axes[1].set(xscale="log", yscale="log", xlabel="step", ylabel="learning rate")
    low, high = tuned.settings["lr"]
    axes[1].set(
        xlim=(max(1, tuned.steps // 200), tuned.steps), ylim=(low / 2, high * 2)
    )  # rates that end at 0 leave it
    figure.savefig(path, dpi=120)  # pyright: ignore[reportUnknownMemberType]


def _run(view: StudyView, fork: ForkView, of: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """A fork's run from the start."""
    steps, values = view.whole_run(fork.fork)
    return steps, values.get(of, ())


def _line(axes: Any, fork: ForkView, steps: tuple[int, ...], values: tuple[float, ...], **style: Any) -> None:
    """A run in both panels: what it observed, and its rate over those steps."""
    axes[0].plot(steps[: len(values)], values, **style)
    at = np.arange(steps[0] if steps else 0, fork.step)
    axes[1].plot(at, fork.schedule(at), **{**style, "label": None})
