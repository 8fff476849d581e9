"""A tuned run against others."""

import pytest

from paceline.views.figures.comparison import comparison
from paceline.views.projection import study_view
from tests.views.studies import STUDY


def test_all_forks_the_best_of_others_and_the_tuned_run_in_bold() -> None:
    view = study_view(STUDY)
    figure = comparison(view, {"cosine & <co>": view, "nothing yet": study_view([])})
    values = {trace.name: trace for trace in figure.data if trace.yaxis == "y"}
    assert list(values) == ["the other 2 forks", "best cosine &amp; &lt;co&gt; of 3", "tuned by paceline"]
    tuned = values["tuned by paceline"]
    assert (list(tuned.x), list(tuned.y)) == ([10, 20, 60, 100], [2.2, 1.6, 0.8, 0.45])
    assert tuned.line.width > values["the other 2 forks"].line.width
    assert figure.layout.yaxis.title.text == "value (averaged weights)"
    assert figure.layout.xaxis.type == figure.layout.xaxis2.type == "log"


def test_raw_weights() -> None:
    figure = comparison(study_view(STUDY), {}, weights="raw")
    tuned = next(trace for trace in figure.data if trace.name == "tuned by paceline")
    assert list(tuned.y) == [2.0, 1.5, 0.9, 0.5]


def test_a_study_that_has_just_begun() -> None:
    assert comparison(study_view(STUDY[:2]), {}).data == ()


@pytest.mark.parametrize("cut", range(3, len(STUDY)))
def test_at_any_time(cut: int) -> None:
    comparison(study_view(STUDY[:cut]), {"other": study_view(STUDY)}).to_json()
