"""A study as text: lines of events, the page that `paceline show` prints, how it ended."""

from pathlib import Path

from paceline.study import Finished, Report
from paceline.views.projection import study_view
from paceline.views.text import describe_result, event_lines, study_page
from tests.views.consoles import string_console
from tests.views.studies import KEPT, STUDY, golden


def test_lines_say_what_matters_once() -> None:
    lines = [line for i, event in enumerate(STUDY) for line in event_lines(event, study_view(STUDY[: i + 1]))]
    assert lines == [
        "decision 1: 2 forks start at 0.1, 0.01",
        "fork 0 reached step 20: 1.6 at rate 0.08; 20 of 180 steps (11 %) done",
        "fork 1 reached step 20: 1.8 at rate 0.008; 40 of 180 steps (22 %) done",
        "decision 2: at step 20, best first: 0: 1.6, 1: 1.8; fork 2 starts as a clone of fork 0 at 0.05: its "
        "0.5-quantile at step 100, 0.3, is the best of 41 candidate rates; fork 2 is expected at 0.3 (0.2 to 0.4) at "
        "step 100",
        "fork 1 dropped: its value 1.8 is behind",
        "fork 2 reached step 100: 0.45 at rate 0.0005; 120 of 180 steps (67 %) done",
        "fork 0 failed at step 60: the value at step 60 is not finite",
        "decision 3: fork 2 ended best, at 0.45 over its last observations",
    ]


def test_a_page_holds_settings_forks_decisions_and_the_result() -> None:
    console, file = string_console()
    console.print(study_page(study_view(STUDY), Path("runs") / "first"))
    page = file.getvalue()
    for part in (
        "study runs/first",
        "dynamic on a linear base; rates from 0.001 to 1; 180 steps in all, as many as 1.8 runs of 100",
        "judged by averaged weights, smaller is better; seed 4",
        "failed: the value at step 60 is not finite",
        "dropped: 1",
        "fork 2 ended best: 0.5 (raw weights), 0.45 (averaged weights)",
        "peak rate 0.1 until step 20, 0.05 to the end, times a linear base",
        "paceline export runs/first --format python",
    ):
        assert part in page, page


def test_results_that_are_none() -> None:
    assert describe_result(study_view(STUDY[:3]), Path("x")) == ["nothing has been observed yet"]
    assert (
        "not over: 120 of 180 steps (67 %) done; fork 0 leads" in describe_result(study_view(STUDY[:11]), Path("x"))[0]
    )


def test_a_checkpoint_is_named_where_there_is_one(tmp_path: Path) -> None:
    assert "steps in all; no checkpoint is kept here" in str(describe_result(study_view(STUDY), tmp_path))
    kept = tmp_path / "checkpoints" / "2-100.pt"
    kept.parent.mkdir()
    kept.touch()
    assert f"its checkpoint: {kept}" in str(describe_result(study_view(STUDY), tmp_path))


def test_the_best_moment_and_an_early_end_are_told(tmp_path: Path) -> None:
    view = study_view(KEPT)
    console, file = string_console()
    console.print(study_page(view, tmp_path))
    rows = [line.split() for line in file.getvalue().splitlines()]
    assert next(row for row in rows if row[:2] == ["0", "the"])[-6:] == ["1.8", "1.5", "at", "step", "20", "turned"]
    assert next(row for row in rows if row[:2] == ["2", "fork"])[-6:] == ["1.45", "0.8", "at", "step", "60", "won"]
    result = describe_result(view, tmp_path)
    assert result[0] == "fork 2 was best at step 60: 0.8 (averaged weights); it ended at step 100 with 1.45"
    assert "160 steps in all, 20 fewer than planned; no checkpoint is kept here" in result
    kept = tmp_path / "checkpoints" / "2-60.pt"
    kept.parent.mkdir()
    kept.touch()
    assert f"its checkpoint: {kept}" in str(describe_result(view, tmp_path))
    lines = [line for i, event in enumerate(KEPT) for line in event_lines(event, study_view(KEPT[: i + 1]))]
    assert "fork 0 ended at step 60: it has turned for the worse since its best value, 1.5 at step 20" in lines
    assert "; the best so far was 0.8 at step 60 of fork 2" in str(describe_result(study_view(KEPT[:11]), tmp_path)[0])


def test_a_best_moment_at_the_end_is_told_once() -> None:
    end = Report(2, 20, 100, (60, 100), {"raw": (0.9, 0.5), "averaged": (0.8, 0.45)}, kept=100)
    view = study_view([*KEPT[:10], end, KEPT[11], KEPT[12], Finished(2, 100, 0.45, "averaged", last=0.45)])
    assert describe_result(view, Path("x"))[0] == "fork 2 was best at step 100: 0.45 (averaged weights), at its end"


def test_a_family_in_lines_and_when_it_is_over() -> None:
    events = golden("journal-1-family")
    lines = [line for i, event in enumerate(events) for line in event_lines(event, study_view(events[: i + 1]))]
    assert [line for line in lines if line.startswith("run 0 of task '")]
    assert not any("dropped" in line or "fork" in line for line in lines)
    console, file = string_console()
    for line in describe_result(study_view(events), Path("runs") / "family"):
        console.print(line)
    for part in ("answer: rates of 2 intervals", "its last 5 values", "'calm' is nearest to", "--task calm"):
        assert part in file.getvalue(), file.getvalue()
