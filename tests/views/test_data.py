"""What a view of a study answers."""

import pytest

from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_a_whole_run_goes_through_the_parents() -> None:
    steps, values = study_view(STUDY).whole_run(2)
    assert steps == (10, 20, 60, 100)
    assert values == {"raw": (2.0, 1.5, 0.9, 0.5), "averaged": (2.2, 1.6, 0.8, 0.45)}


def test_a_lineage_begins_with_the_oldest_fork() -> None:
    view = study_view(STUDY)
    assert [fork.fork for fork in view.lineage_of(2)] == [0, 2]
    assert [fork.fork for fork in view.lineage_of(1)] == [1]


def test_values_are_of_the_weights_that_decide_or_of_the_others() -> None:
    view = study_view(STUDY)
    fork = view.fork(2)
    assert (view.weights, view.value(fork)) == ("averaged", 0.45)
    assert fork.last_values == {"raw": 0.5, "averaged": 0.45}
    assert view.value(fork._replace(values={"raw": (0.9, 0.5)})) == 0.5
    assert view.value(fork._replace(values={})) is None


def test_a_fork_knows_its_rate_and_why_it_stopped() -> None:
    view = study_view(STUDY)
    assert view.fork(2).multiplier == 0.05
    assert view.fork(1).rate == pytest.approx(0.01 * 0.8)
    assert view.fork(0).reason == "the value at step 60 is not finite"
    assert view.fork(1).reason == "its value 1.8 is behind"
    assert view.fork(2).reason == ""


def test_settings_of_one_run_of_a_family_and_of_nothing() -> None:
    one, family, nothing = study_view(STUDY), study_view(golden("journal-1-family")), study_view([])
    assert (one.tasks, one.steps, one.total_steps, one.best) == ((), 100, 180, one.fork(2))
    assert family.tasks == ("calm", "wild")
    assert family.best is None
    assert (nothing.steps, nothing.total_steps, nothing.weights, nothing.best) == (0, 0, "raw", None)
