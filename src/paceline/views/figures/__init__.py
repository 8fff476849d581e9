"""Figures of a study, with plotly: for notebooks, the report and the web page alike.

Each takes a `StudyView` and gives a figure, or None where the study has nothing to show for it. They draw what
`views.curves`, `lineage`, `bands`, `grids`, `places` and `spending` say, and compute nothing themselves.
"""

from collections.abc import Callable

from paceline.views.data import StudyView
from paceline.views.figures.calibration import calibration
from paceline.views.figures.costs import costs
from paceline.views.figures.embedding import embedding
from paceline.views.figures.failure import failure
from paceline.views.figures.forecasts import forecasts
from paceline.views.figures.lineage import lineage
from paceline.views.figures.style import DARK_FOR, Figure, style
from paceline.views.figures.surface import surface
from paceline.views.figures.traces import traces

FIGURES: dict[str, Callable[[StudyView], Figure | None]] = {
    "traces": traces,
    "lineage": lineage,
    "forecasts": forecasts,
    "surface": surface,
    "failure": failure,
    "embedding": embedding,
    "calibration": calibration,
}

__all__ = ["DARK_FOR", "FIGURES", "Figure", "costs", "style"]
