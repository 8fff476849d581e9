"""What the events of a study add up to."""

import pytest

from paceline.study import BestState, Created, Failure, because
from paceline.views.data import Band
from paceline.views.projection import Selection, forecast_weights, study_view
from tests.views.studies import KEPT, STUDY, golden


def test_forks_lead_fail_and_win() -> None:
    view = study_view(STUDY)
    assert [fork.state for fork in view.forks] == ["failed", "dropped", "won"]
    assert [view.value(fork) for fork in view.forks] == [0.9, 1.8, 0.45]
    assert view.done_steps == 20 + 20 + 80 + 40
    assert view.best == view.fork(2)
    assert view.decisions[1].dropped == (1,)
    assert view.fork(0).failure == Failure("not finite", step=60)
    assert view.fork(1).drop == because("behind", value=1.8)


def test_the_best_moment_is_that_of_the_reports_and_of_the_end() -> None:
    view = study_view(KEPT)
    assert [fork.state for fork in view.forks] == ["turned", "dropped", "won"]
    assert [fork.kept and fork.kept.step for fork in view.forks] == [20, 20, 60]
    assert view.kept == BestState(0.8, "averaged", 2, 60) == study_view(KEPT[:11]).kept
    assert view.saved_steps == 20
    created = KEPT[0]
    assert isinstance(created, Created)
    larger = study_view([Created({**created.settings, "mode": "max"}), *KEPT[1:6]])
    assert larger.kept == BestState(1.8, "averaged", 1, 20)
    ends = study_view(STUDY)
    assert (ends.kept, ends.saved_steps) == (None, 0)


@pytest.mark.parametrize(
    ("events", "states", "going"),
    [
        (4, ["running", "running"], [0, 1]),
        (5, ["leading", "running"], [1]),
        (6, ["leading", "running"], []),
        (10, ["leading", "dropped", "running"], [0, 2]),
        (11, ["leading", "dropped", "running"], [0]),
        (12, ["failed", "dropped", "leading"], []),
    ],
)
def test_states_at_every_point_of_a_study(events: int, states: list[str], going: list[int]) -> None:
    view = study_view(STUDY[:events])
    assert [fork.state for fork in view.forks] == states
    assert [fork.fork for fork in view.forks if fork.stop is not None] == going


def test_a_forecast_is_the_one_that_was_journaled() -> None:
    view = study_view(STUDY[:10])
    assert view.fork(2).forecast == Band(100, 0.2, 0.3, 0.4, "averaged")
    assert view.fork(0).forecast is None
    assert study_view(STUDY[:11]).fork(2).forecast is None  # it has happened


def test_a_forecast_names_its_weights_or_they_follow_from_the_settings() -> None:
    settings = {"steps": 100, "strategy": {"weights": "averaged", "judge_by": "now"}}
    of_end, earlier = {"steps": [60, 100]}, {"steps": [60]}
    assert forecast_weights({**of_end, "weights": "raw"}, settings) == "raw"
    assert forecast_weights(of_end, settings) == "averaged"
    by_final = {"steps": 100, "strategy": {"weights": "averaged", "judge_by": "final"}}
    assert forecast_weights(of_end, by_final) == "raw"
    assert forecast_weights(earlier, by_final) == "averaged"
    assert forecast_weights({**of_end, "weights": "averaged"}, by_final) == "averaged"
    assert forecast_weights(of_end, {}) == "raw"


def test_larger_is_better_where_the_mode_says_so() -> None:
    created = STUDY[0]
    assert isinstance(created, Created)
    view = study_view([Created({**created.settings, "mode": "max"}), *STUDY[1:6]])
    assert view.leader == 1


def test_the_golden_journal() -> None:
    view = study_view(golden("journal-1"))
    assert [fork.state for fork in view.forks] == ["dropped", "failed"]
    assert view.best is None


@pytest.mark.parametrize("name", ["journal-1-greedy", "journal-1-family", "journal-1"])
def test_up_to_an_event_a_study_is_what_it_was_then(name: str) -> None:
    events = golden(name)
    for end in range(1, len(events) + 1):
        assert repr(study_view(events, Selection(end=end))) == repr(study_view(events[:end]))


def test_a_selection_of_forks_has_no_others() -> None:
    whole, part = study_view(STUDY), study_view(STUDY, Selection(forks=frozenset({1, 2}), decisions=2))
    assert [fork.fork for fork in part.forks] == [1, 2]
    assert part.fork(2).parent is None, "its parent is not shown"
    assert [decision.round for decision in part.decisions] == [2, 3]
    assert [interval.fork for interval in part.decisions[0].intervals] == [2]
    assert [row["fork"] for row in part.decisions[0].details["ranking"]] == [1]
    assert part.decisions[0].done_steps == whole.decisions[1].done_steps
    assert (part.done_steps, part.finished) == (whole.done_steps, whole.finished)
    assert part.best_so_far == ()
