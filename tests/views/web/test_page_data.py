"""The data of the pages."""

from pathlib import Path

import pytest

from benchmarks._journals import write_study
from paceline.errors import InputError
from paceline.views.projection import Selection, study_view
from paceline.views.web.page_data import (
    best_schedule,
    decisions_page,
    forks_page,
    highlights,
    schedule_tasks,
    status,
    summary,
    thin_view,
)
from paceline.views.web.study_reader import StudyReader
from tests.views.studies import EVENTS, KEPT, golden
from tests.views.web.large_studies import large_reader, whole_view
from tests.views.web.studies import write


@pytest.fixture(scope="module", params=["population", "family"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / request.param
    write_study(path, request.param, 1_400)
    return path


@pytest.fixture
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StudyReader:
    return large_reader(folder, monkeypatch)


def test_pages_of_forks_and_decisions_reach_the_first(study: StudyReader) -> None:
    whole, before, rows = whole_view(study), None, list[list[str]]()
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


def test_thinning_keeps_extremes_and_ends(study: StudyReader) -> None:
    view = study.view()
    few = thin_view(view, 300)
    assert sum(len(fork.steps) for fork in few.forks) < sum(len(fork.steps) for fork in view.forks)
    for fork, kept in zip(view.forks, few.forks, strict=True):
        assert kept.last_values == fork.last_values
        assert kept.steps[:1] == fork.steps[:1]
        for of, column in fork.values.items():  # none of a run that has not reported
            assert {min(column), max(column)} <= set(kept.values[of])
    assert thin_view(view, 10**9) is view


def test_what_a_study_says_in_each_of_its_states() -> None:
    assert status(study_view(EVENTS[:4]), 2) == "Nothing has been observed yet."
    assert (
        status(study_view(EVENTS[:6]), 2)
        == "Fork 0 leads at step 20: 1.5 with raw weights and 1.6 with averaged weights."
    )
    assert status(study_view(EVENTS), 3) == "Fork 2 ended best: 0.5 with raw weights and 0.45 with averaged weights."
    family = golden("journal-1-family")
    assert status(study_view(family), 3) == "A schedule for each of 2 tasks, from 3 runs."
    assert status(study_view(family, Selection(end=3)), 2).endswith("done.")


def test_a_page_tells_the_best_moment(tmp_path: Path) -> None:
    view = study_view(KEPT)
    assert status(view, 3) == (
        "Fork 2 was best at step 60: 0.8 (averaged weights); it ended at step 100 with 1.45. "
        "The study ended 20 steps early."
    )
    assert status(study_view(KEPT[:11]), 3).endswith("The best so far was 0.8 at step 60 of fork 2.")
    assert dict(highlights(view))["best value, averaged weights"] == "0.8"
    assert dict(highlights(view))["its step"] == "60"
    assert best_schedule(view, "first", "")[1] == "fork 2 of the study first, at its best at step 60"
    reader = StudyReader(write(tmp_path, KEPT))
    reader.refresh()
    page = forks_page(reader, None)
    column = page["columns"].index("best")
    assert [row[column] for row in page["rows"]] == ["0.8 at step 60", "1.2 at step 20", "1.5 at step 20"]
    assert [row[page["columns"].index("state")] for row in page["rows"]] == ["won", "dropped", "turned"]


def test_highlights_are_numbers_of_the_view() -> None:
    assert dict(highlights(study_view(EVENTS))) == {
        "of all steps done": "111 %",
        "best value, averaged weights": "0.45",
        "best fork": "2",
        "its last peak rate": "0.05",
    }
    running = dict(highlights(study_view(EVENTS[:6])))
    assert (running["leading fork"], running["forks alive"]) == ("0", "2")
    view = study_view(golden("journal-1-family"))
    for task, run in view.best_runs.items():
        assert float(dict(highlights(view))[f"best of {task}"]) == pytest.approx(run.value, rel=1e-3)


def test_the_best_schedule_of_a_run_of_a_task_and_of_nothing() -> None:
    view = study_view(EVENTS)
    assert best_schedule(view, "first", "") == (view.fork(2).schedule, "fork 2 of the study first")
    assert best_schedule(study_view(EVENTS[:6]), "a", "")[1] == "fork 0 of the study a, which is not finished"
    family = study_view(golden("journal-1-family"))
    assert schedule_tasks(family) == ["calm", "wild"]
    assert best_schedule(family, "a", "calm")[0] == family.answers["calm"].schedule
    with pytest.raises(InputError, match="there is no schedule for task 'none' yet"):
        best_schedule(family, "a", "none")
    with pytest.raises(InputError, match="nothing has been observed"):
        best_schedule(study_view([]), "a", "")
    assert schedule_tasks(study_view([])) == []


def test_a_summary_counts_what_is_there_and_what_is_shown(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path))
    reader.refresh()
    data = summary(reader)
    assert (data["revision"], data["events"], data["decisions"], data["forks"]) == (
        f"0.{len(EVENTS)}",
        len(EVENTS),
        3,
        3,
    )
    assert (data["state"], data["done"], data["total"], data["shown_forks"]) == ("finished", 200, 180, 3)
    assert data["written"] == pytest.approx((tmp_path / "journal.jsonl").stat().st_mtime)


def test_a_decision_has_its_number_step_time_and_sentences(tmp_path: Path) -> None:
    reader = StudyReader(write(tmp_path))
    reader.refresh()
    page = decisions_page(reader, None)
    assert (page["count"], page["before"]) == (3, None)
    assert [(row["at"], row["round"], row["step"]) for row in page["rows"]] == [(2, 3, 100), (1, 2, 20), (0, 1, 0)]
    assert page["rows"][1]["took"] == "100 ms"
    assert page["rows"][1]["sentences"] == reader.decision_text(1).sentences
