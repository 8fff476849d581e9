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
    from paceline.views.format import format_cost as format_cost
    from paceline.views.format import format_number as format_number
    from paceline.views.format import format_origin as format_origin
    from paceline.views.format import format_progress as format_progress
    from paceline.views.format import format_schedule as format_schedule
    from paceline.views.json_output import finite_values as finite_values
    from paceline.views.json_output import study_json as study_json
    from paceline.views.live import progress_display as progress_display
    from paceline.views.messages import study_messages as study_messages
    from paceline.views.plan import EndForecast as EndForecast
    from paceline.views.plan import ForecastCurve as ForecastCurve
    from paceline.views.plan import PlanView as PlanView
    from paceline.views.plan import RunEnd as RunEnd
    from paceline.views.plan import RunLine as RunLine
    from paceline.views.plan import plan_json as plan_json
    from paceline.views.plan_page import describe_plan as describe_plan
    from paceline.views.plots import Plots as Plots
    from paceline.views.projection import study_view as study_view
    from paceline.views.report import html_report as html_report
    from paceline.views.text import describe_result as describe_result
    from paceline.views.text import make_console as make_console
    from paceline.views.text import study_page as study_page
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
    "describe_result": "text",
    "finite_values": "json_output",
    "format_cost": "format",
    "format_number": "format",
    "format_origin": "format",
    "format_progress": "format",
    "format_schedule": "format",
    "html_report": "report",
    "make_console": "text",
    "study_messages": "messages",
    "plan_figure": "figures",
    "plan_json": "plan",
    "progress_display": "live",
    "schedule_figure": "figures",
    "serve_studies": "web.serving",
    "study_json": "json_output",
    "study_page": "text",
    "study_view": "projection",
    "write_figure": "figures",
}

__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'paceline.views' has no attribute {name!r}: it offers {', '.join(_MODULES)}")
    return getattr(import_module(f"paceline.views.{_MODULES[name]}"), name)
