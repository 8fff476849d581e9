"""A study too large to be shown whole: what is shown of it is true, and the rest is counted."""

from pathlib import Path

import pytest

from benchmarks._journals import write_study
from paceline.study import read_journal
from paceline.views.data import StudyView
from paceline.views.study_view import study_view
from paceline.views.web import study_reader as module
from paceline.views.web.page_data import decisions_page, forks_page, summary, thinned
from paceline.views.web.study_reader import MOST_FORKS, StudyReader


@pytest.fixture(scope="module", params=["population", "family"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / request.param
    write_study(path, request.param, 1_800)
    return path


@pytest.fixture
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StudyReader:
    monkeypatch.setattr(module, "WHOLE_LINES", 1_000)
    large = StudyReader(folder)
    large.refresh()
    assert not large.whole
    return large


def truth(study: StudyReader) -> StudyView:
    return study_view(read_journal(study.path))


def test_what_is_shown_of_a_large_study_is_true(study: StudyReader) -> None:
    whole, shown = truth(study), study.view()
    assert len(shown.forks) <= MOST_FORKS < len(whole.forks)
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


def test_pages_of_forks_and_decisions_reach_the_first(study: StudyReader) -> None:
    whole, before, rows = truth(study), None, list[list[str]]()
    while True:
        page = forks_page(study, before)
        rows, before = [*rows, *page["rows"]], page["before"]
        if before is None:
            break
    assert [int(row[0]) for row in rows] == sorted((fork.fork for fork in whole.forks), reverse=True)
    state = page["columns"].index("state")
    assert [row[state] for row in rows] == [fork.state for fork in reversed(whole.forks)]
    last = decisions_page(study, 3)
    assert [row["at"] for row in last["rows"]] == [2, 1, 0]
    assert last["before"] is None


def test_a_view_as_of_a_decision_ends_there(study: StudyReader) -> None:
    view = study.view(decision=4)
    assert view.decisions[-1].reasons == study.state.decided(study.state.decisions[4]).reasons
    assert view.finished is None
    assert max(fork.step for fork in view.forks) == view.decisions[-1].step


def test_little_is_held_and_it_stays_little_as_the_study_grows(study: StudyReader) -> None:
    summary(study)
    held = study.held
    assert held < study.state.count / 2
    for decision in range(0, len(study.state.decisions), 3):
        study.view(decision=decision)
    summary(study)
    assert study.held <= 1.2 * held


def test_a_small_study_is_shown_whole_until_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_study(tmp_path / "s", "population", 1_200)
    study = StudyReader(tmp_path / "s")
    study.refresh()
    assert study.view() == truth(study)
    monkeypatch.setattr(module, "WHOLE_LINES", 1_000)
    assert study.view().leader == truth(study).leader


def test_thinning_keeps_extremes_and_ends(study: StudyReader) -> None:
    view = study.view()
    few = thinned(view, 300)
    assert sum(len(fork.steps) for fork in few.forks) < sum(len(fork.steps) for fork in view.forks)
    for fork, kept in zip(view.forks, few.forks, strict=True):
        assert kept.last_values == fork.last_values
        assert kept.steps[:1] == fork.steps[:1]
        for of, column in fork.values.items():  # none of a run that has not reported
            assert {min(column), max(column)} <= set(kept.values[of])
    assert thinned(view, 10**9) is view
