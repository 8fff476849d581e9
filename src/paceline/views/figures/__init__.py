"""Figures of a study, drawn with plotly, for notebooks, the report and the web page.

Each function takes a `StudyView` and returns a figure, or None if the study has nothing to show in it. The functions
only draw: the numbers come from `views.curves`, `lineage`, `bands`, `grids`, `task_map` and `cost_curves`.
"""

from collections.abc import Callable

from paceline.views.data import StudyView
from paceline.views.figures.calibration import calibration
from paceline.views.figures.comparison import comparison
from paceline.views.figures.costs import costs
from paceline.views.figures.embedding import embedding
from paceline.views.figures.failure import failure
from paceline.views.figures.files import check_figure_path, write_figure
from paceline.views.figures.forecasts import forecasts
from paceline.views.figures.lineage import lineage
from paceline.views.figures.plan import plan_figure
from paceline.views.figures.schedule import schedule_figure
from paceline.views.figures.style import DARK_COLOURS, Figure, graph_objects, recolour, set_layout, subplots
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
"""The figures of one study, by name."""

__all__ = [
    "DARK_COLOURS",
    "FIGURES",
    "Figure",
    "check_figure_path",
    "comparison",
    "costs",
    "graph_objects",
    "plan_figure",
    "recolour",
    "schedule_figure",
    "set_layout",
    "subplots",
    "write_figure",
]
