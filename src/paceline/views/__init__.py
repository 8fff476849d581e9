"""What a study looks like: plain data first, then text, tables, figures and pages. Nothing here imports torch.

Modules are imported when a name is first used, so that a table needs no plotly and a figure no web server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.views.data import ForkView as ForkView
    from paceline.views.data import StudyView as StudyView
    from paceline.views.export import as_csv as as_csv
    from paceline.views.export import as_python as as_python
    from paceline.views.family import describe_budget as describe_budget
    from paceline.views.figures import check_figure_path as check_figure_path
    from paceline.views.figures import comparison as comparison
    from paceline.views.figures import plan_figure as plan_figure
    from paceline.views.figures import schedule_figure as schedule_figure
    from paceline.views.figures import write_figure as write_figure
    from paceline.views.plan import EndForecast as EndForecast
    from paceline.views.plan import ForecastCurve as ForecastCurve
    from paceline.views.plan import PlanView as PlanView
    from paceline.views.plan import RunEnd as RunEnd
    from paceline.views.plan import RunLine as RunLine
    from paceline.views.plan import plan_json as plan_json
    from paceline.views.plan_page import describe_plan as describe_plan
    from paceline.views.plots import Plots as Plots
    from paceline.views.report import html_report as html_report
    from paceline.views.web.serving import serve_studies as serve_studies

_MODULES = {
    "EndForecast": "plan",
    "ForecastCurve": "plan",
    "ForkView": "data",
    "PlanView": "plan",
    "Plots": "plots",
    "RunEnd": "plan",
    "RunLine": "plan",
    "StudyView": "data",
    "as_csv": "export",
    "as_python": "export",
    "check_figure_path": "figures",
    "comparison": "figures",
    "describe_budget": "family",
    "describe_plan": "plan_page",
    "html_report": "report",
    "plan_figure": "figures",
    "plan_json": "plan",
    "schedule_figure": "figures",
    "serve_studies": "web.serving",
    "write_figure": "figures",
}

__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'paceline.views' has no attribute {name!r}: it offers {', '.join(_MODULES)}")
    return getattr(import_module(f"paceline.views.{_MODULES[name]}"), name)
