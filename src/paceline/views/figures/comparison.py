"""A tuned run with its forks against other runs, such as fixed schedules: values above, learning rates below."""

from collections.abc import Mapping
from math import log10

from paceline.views.curves import Curve, curves, whole_curve
from paceline.views.data import StudyView
from paceline.views.figures.axes import log_ticks, rate_axis, value_axis
from paceline.views.figures.labels import label, weights_label
from paceline.views.figures.panels import LineStyle, add_lines, value_and_rate_panels
from paceline.views.figures.style import LIGHT, SERIES_COLOURS, Figure, set_layout

OTHER_COLOURS = SERIES_COLOURS[1:]  # the first one is that of the tuned run
SHOWN_STEP_SPAN = 200  # of the length of a run to the first step that is shown


def comparison(tuned: StudyView, others: Mapping[str, StudyView], *, weights: str = "averaged") -> Figure:
    """All forks of a study with its best run in bold, and the best run of each other study.

    Args:
        tuned: the study.
        others: studies to compare with, by name.
        weights: "raw" or "averaged", whose values to draw.
    """
    figure, best = value_and_rate_panels(), tuned.best
    forks = curves(tuned, weights)
    name = f"the other {len(tuned.forks) - (best is not None)} forks"
    _add(figure, forks, LineStyle(name, LIGHT.dropped, 0.9))
    winners = list[Curve]()
    for i, (name, view) in enumerate(others.items()):
        if view.best is not None:
            winners.append(whole_curve(view, view.best, weights))
            look = LineStyle(f"best {label(name)} of {len(view.forks)}", OTHER_COLOURS[i % len(OTHER_COLOURS)], 1.6)
            _add(figure, winners[-1:], look)
    if best is not None:
        winners.append(whole_curve(tuned, best, weights))
        _add(figure, winners[-1:], LineStyle("tuned by paceline", LIGHT.best, 3))
    set_layout(figure, "", height=620)
    values = [value for curve in winners or forks for value in curve.values]
    shown = [value for curve in forks for value in curve.values]
    figure.update_yaxes(value_axis(values or shown, shown), title_text=weights_label(weights), row=1)
    figure.update_yaxes(rate_axis(tuned), title_text="learning rate", row=2)
    first, last = max(1, tuned.steps // SHOWN_STEP_SPAN), max(tuned.steps, 2)
    steps = {"type": "log", "range": [log10(first), log10(last)], **log_ticks(first, last)}
    figure.update_xaxes(steps)
    figure.update_xaxes(title_text="step", row=2)
    return figure


def _add(figure: Figure, lines: "tuple[Curve, ...] | list[Curve]", look: LineStyle) -> None:
    keys = [line.fork for line in lines]
    add_lines(figure, lines, look, keys=keys, hover="%{fullData.name}, fork %{customdata}")
