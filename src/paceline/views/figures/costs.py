"""What several studies cost, and what they came to."""

from collections.abc import Mapping
from typing import Any

from paceline.views.data import StudyView
from paceline.views.figures.axes import value_axis
from paceline.views.figures.labels import label
from paceline.views.figures.style import MARKS, TASKS, Figure, framed, graph_objects
from paceline.views.spending import Bill, bills


def costs(views: Mapping[str, StudyView]) -> Figure:
    """Cost in runs against value: where each study ended, and the best value on the way there."""
    found = bills(views)
    figure = graph_objects().Figure()
    for i, bill in enumerate(found):
        turn = i // len(TASKS)
        for trace in _drawn(bill, TASKS[i % len(TASKS)], MARKS[turn % len(MARKS)], "dot" if turn % 2 else "solid"):
            figure.add_trace(trace)
    framed(figure, "Cost against value", height=430 + 22 * len(found))
    figure.update_xaxes(title_text="cost: steps of all forks, in runs", rangemode="tozero")
    ends = [bill.value for bill in found if bill.value is not None]
    late = [value for bill in found for cost, value in bill.way if cost >= 0.1 * bill.cost]
    figure.update_yaxes(title_text="value", **value_axis([*ends, *late]))
    figure.update_layout(legend={"y": 0, "yref": "container", "yanchor": "bottom"}, margin_t=56, margin_b=64)
    return figure


def _drawn(bill: Bill, colour: str, mark: str, dash: str) -> list[Any]:
    go, name = graph_objects(), label(bill.name)
    look: dict[str, Any] = {"name": name, "legendgroup": name}
    hover = "%{fullData.name}: %{x:.3g} runs, %{y:.4g}"
    way = [*bill.way, *([(bill.cost, bill.way[-1][1])] if bill.way else [])]
    line = go.Scatter(
        x=[cost for cost, _ in way],
        y=[value for _, value in way],
        mode="lines",
        line={"color": colour, "width": 1.3, "dash": dash, "shape": "hv"},
        hovertemplate=f"{hover}<extra></extra>",
        showlegend=bill.value is None,
        **look,
    )
    if bill.value is None:
        return [line]
    shape = mark if bill.finished else f"{mark}-open"
    end = go.Scatter(
        x=[bill.cost],
        y=[bill.value],
        customdata=[label(bill.of)],
        mode="markers",
        marker={"color": colour, "size": 12, "symbol": shape},
        hovertemplate=f"{hover} (%{{customdata}} weights)<extra></extra>",
        cliponaxis=False,
        **look,
    )
    return [line, end]
