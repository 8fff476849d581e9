"""Studies side by side."""

from paceline.views.figures.costs import costs
from paceline.views.projection import study_view
from tests.views.studies import STUDY


def test_each_study_has_a_mark_at_its_cost_and_value() -> None:
    figure = costs({"<i>mine</i>": study_view(STUDY), "unfinished": study_view(STUDY[:10]), "new": study_view([])})
    marks = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    assert set(marks) == {"&lt;i&gt;mine&lt;/i&gt;", "unfinished"}
    mark = marks["&lt;i&gt;mine&lt;/i&gt;"]
    assert (list(mark.x), list(mark.y), mark.marker.symbol) == ([1.6], [0.45], "circle")
    assert marks["unfinished"].marker.symbol == "circle-open"
    lines = {trace.name: trace for trace in figure.data if trace.mode == "lines"}
    assert (list(lines["new"].x), lines["new"].showlegend) == ([], True)
    line = lines["&lt;i&gt;mine&lt;/i&gt;"]
    assert list(zip(line.x, line.y, strict=True)) == [(0.2, 1.5), (0.4, 1.2), (1.2, 0.45), (1.6, 0.45)]


def test_studies_beyond_the_colours_get_other_markers() -> None:
    figure = costs({f"study {i}": study_view(STUDY) for i in range(9)})
    looks = [(t.marker.color, t.marker.symbol) for t in figure.data if t.mode == "markers"]
    assert len(set(looks)) == 9
