"""A study that is too large to be shown whole: everything that is shown of it is true, and little is in memory."""

from pathlib import Path

import pytest

from benchmarks._journals import write_study
from paceline.study import Decided
from paceline.views.web import selection, study_reader
from paceline.views.web.page_data import summary
from paceline.views.web.selection import MAX_DECISIONS, MAX_FORKS
from paceline.views.web.study_reader import StudyReader
from tests.views.web.large_studies import large_reader, whole_view


@pytest.fixture(scope="module", params=["population", "family"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / request.param
    write_study(path, request.param, 1_800)
    return path


@pytest.fixture
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StudyReader:
    return large_reader(folder, monkeypatch)


def test_what_is_shown_of_a_large_study_is_true(study: StudyReader) -> None:
    whole, shown = whole_view(study), study.view()
    assert len(shown.forks) <= MAX_FORKS < len(whole.forks)
    assert (shown.done_steps, shown.leader, shown.settings) == (whole.done_steps, whole.leader, whole.settings)
    assert shown.best_runs == whole.best_runs
    for one, other in zip(shown.decisions[-5:], whole.decisions[-5:], strict=True):
        for some, all_ in (
            (one.dropped, other.dropped),
            (one.intervals, other.intervals),
            (one.details, other.details),
        ):
            assert set(some) <= set(all_)
        assert (one.round, one.step, one.reasons, one.seconds, one.done_steps) == (
            *(other.round, other.step, other.reasons, other.seconds, other.done_steps),
        )
    for fork in shown.forks:
        true = whole.fork(fork.fork)
        assert (fork.step, fork.stop, fork.state, fork.schedule) == (true.step, true.stop, true.state, true.schedule)
        assert fork.last_values == true.last_values
        seen, all_seen = ({*zip(f.steps, f.values.get("raw", ()), strict=True)} for f in (fork, true))
        assert seen <= all_seen


def test_a_view_as_of_a_decision_ends_there(study: StudyReader) -> None:
    view = study.view(decision=4)
    assert view.decisions[-1].reasons == study.state.decided(study.state.decisions[4]).reasons
    assert view.finished is None
    assert max(fork.step for fork in view.forks) == view.decisions[-1].step


def test_little_is_in_memory_and_it_stays_little_as_the_study_grows(study: StudyReader) -> None:
    summary(study)
    in_memory = study.events_in_memory
    assert in_memory < study.state.count / 2
    for decision in range(0, len(study.state.decisions), 3):
        study.view(decision=decision)
    summary(study)
    assert study.events_in_memory <= 1.2 * in_memory


def test_a_small_study_is_shown_whole_until_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_study(tmp_path / "s", "population", 1_200)
    study = StudyReader(tmp_path / "s")
    study.refresh()
    assert study.view() == whole_view(study)
    monkeypatch.setattr(study_reader, "WHOLE_LINES", 1_000)
    assert study.view().leader == whole_view(study).leader


def test_only_the_shown_decision_has_its_grids(study: StudyReader) -> None:
    for decision in (None, 4):
        shown = study.view(decision=decision).decisions
        if "surface" in shown[-1].details:
            assert not any("surface" in earlier.details for earlier in shown[:-1])
    parsed = [event for event in study._lines.parsed.values() if isinstance(event, Decided)]
    assert sum("surface" in event.details for event in parsed) <= 1


def test_reports_are_evenly_spaced_and_the_late_ones_are_all_there(
    study: StudyReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "MAX_REPORTS", 1)  # three of each fork
    monkeypatch.setattr(selection, "MAX_DECISIONS", 2)
    state, view = study.state, study.view()
    since = state.decisions[-2].event
    for fork in view.forks:
        numbers = state.forks[fork.fork].reports
        shown = [n for n in numbers if set(state.report(n).steps) <= set(fork.steps)]
        assert shown[:1] == numbers[:1]
        assert shown[-1:] == numbers[-1:]
        assert len(shown) <= 6
        assert set([n for n in numbers if n > since][-3:]) <= set(shown)
        assert len(fork.steps) == sum(len(state.report(n).steps) for n in shown)


def test_views_of_a_large_study_parse_a_bounded_part_of_its_decisions(study: StudyReader) -> None:
    study.view()
    decisions = {decision.event for decision in study.state.decisions}
    assert len(decisions & set(study._lines.parsed)) <= MAX_DECISIONS
