"""Controls of figures: buttons for the scale of the steps, and a slider over decisions.

Pages replace both with controls of the browser, which also work by keyboard (page/controls.js).
"""

from collections.abc import Iterable, Sequence
from math import log10
from typing import Any

from paceline.views.figures.style import LIGHT

MAX_DECISIONS = 40  # positions of a slider: those of the latest decisions
LOG_STEP_SPAN = 1000  # of the last step to the first one on a log scale, at most


def scale_buttons(axes: Sequence[str], steps: Iterable[int]) -> dict[str, Any]:
    """Buttons below the axes for a linear or a log scale of the steps: decisions are often made early in a run."""
    positive = [step for step in steps if step > 0] or [1]
    log_range = [log10(max(min(positive), max(positive) / LOG_STEP_SPAN)), log10(max(positive) * 1.05)]
    scales: dict[str, dict[str, Any]] = {
        "linear": {"type": "linear", "autorange": True, "tickmode": "auto", "dtick": None},
        "log": {"type": "log", "range": log_range, "dtick": "D2"},
    }
    return {
        "type": "buttons",
        "direction": "right",
        "x": 1,
        "xanchor": "right",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 28},
        "font": {"size": 11, "color": LIGHT.muted},
        "bgcolor": LIGHT.paper,
        "bordercolor": LIGHT.grid,
        "showactive": False,
        "buttons": [
            {
                "label": label,
                "method": "relayout",
                "args": [{f"{axis}.{key}": value for axis in axes for key, value in scale.items()}],
            }
            for label, scale in scales.items()
        ],
    }


def decision_slider(labels: Sequence[str], visible: Sequence[Sequence[bool]], *, active: int) -> dict[str, Any]:
    """A slider over decisions.

    Args:
        labels: one for each position.
        visible: for each position, whether each trace of the figure is shown.
        active: the first position.
    """
    return {
        "active": active,
        "currentvalue": {"prefix": "decision: ", "xanchor": "left", "font": {"size": 13, "color": LIGHT.ink}},
        "pad": {"t": 56, "b": 4},
        "bgcolor": LIGHT.grid,
        "bordercolor": LIGHT.muted,
        "tickcolor": LIGHT.paper,
        "minorticklen": 0,
        "ticklen": 0,
        "font": {"size": 1, "color": LIGHT.paper},  # hides the labels below, which would overlap
        "steps": [
            {"label": label, "method": "restyle", "args": [{"visible": list(shown)}]}
            for label, shown in zip(labels, visible, strict=True)
        ],
    }
