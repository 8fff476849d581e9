"""Tasks on a map."""

from paceline.views.figures.embedding import embedding
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden
from tests.views.test_task_map import view_with_new_task


def test_tasks_are_at_their_locations() -> None:
    view = study_view(golden("journal-1-family"))
    (tasks,) = embedding(view).data
    assert list(tasks.text) == list(view.embedding)
    assert list(tasks.x) == [location[0] for location in view.embedding.values()]
    assert embedding(study_view(STUDY)) is None


def test_a_new_task_has_its_mean_and_posterior() -> None:
    figure = embedding(view_with_new_task([1.0, 2.0], [[0.25, 0.0], [0.0, 0.04]]))
    named = {trace.name: trace for trace in figure.data}
    assert (list(named["the new task"].x), list(named["the new task"].y)) == ([1.0], [2.0])
    assert list(named["its posterior"].customdata) == [0.5]
    assert max(named["two deviations"].x) <= figure.layout.xaxis.range[1]
    assert max(named["two deviations"].y) <= figure.layout.yaxis.range[1]
