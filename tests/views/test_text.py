"""What a study looks like: redrawn on a terminal, plain lines elsewhere, a page when it is asked for."""

import io
from pathlib import Path

from rich.console import Console

from paceline.study import Interval, read_journal
from paceline.traces import Schedule
from paceline.views.data import read
from paceline.views.live import Lines, Screen, watcher
from paceline.views.text import event_lines, result_in_words, study_page
from paceline.views.words import bound_in_words, schedule_in_words
from tests.views.test_data import STUDY


def printed(terminal: bool = False) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=terminal, width=160, highlight=False, markup=False), file


def test_lines_say_what_matters_once() -> None:
    lines = [line for i, event in enumerate(STUDY) for line in event_lines(event, read(STUDY[: i + 1]))]
    assert lines == [
        "decision 1: 2 forks start at 0.1, 0.01",
        "fork 0 reached step 20: 1.6 at rate 0.08; 20 of 180 steps (11 %) done",
        "fork 1 reached step 20: 1.8 at rate 0.008; 40 of 180 steps (22 %) done",
        "decision 2: at step 20, best first: 0: 1.6, 1: 1.8; fork 2 is expected at 0.3 (0.2 to 0.4) at step 100",
        "fork 1 dropped: its value 1.8 is behind",
        "fork 2 reached step 100: 0.45 at rate 0.0005; 120 of 180 steps (67 %) done",
        "fork 0 failed at step 60: the value at step 60 is not finite",
        "decision 3: fork 2 ended best, at 0.45 over its last observations",
    ]


def test_the_view_suits_where_the_output_goes() -> None:
    plain = printed()
    assert isinstance(watcher(plain[0]), Lines)
    assert isinstance(watcher(printed(terminal=True)[0]), Screen)
    with watcher(plain[0], STUDY[:5], title="first") as view, watcher(None) as silent:
        for event in STUDY[5:]:
            view.on_event(event)
            view.on_step(0, 0)
            silent.on_event(event)
    lines = plain[1].getvalue().splitlines()
    assert lines[0] == "first: fork 1 reached step 20: 1.8 at rate 0.008; 40 of 180 steps (22 %) done"


def test_the_screen_shows_progress_inside_an_interval() -> None:
    console, file = printed(terminal=True)
    with Screen(console, STUDY[:8]) as screen:
        for event in STUDY[8:10]:
            screen.on_event(event)
        screen.on_step(2, 70)
    shown = file.getvalue()
    for part in (
        "90 of 180 steps (50 %)",  # 40 reported and 50 of the interval that runs
        "s left",
        "fork 0 at 20",
        "0.3 (0.2 to 0.4) at step 100",
        "leading",
        "dropped",
        "decision 2: at step 20",
    ):
        assert part in shown, shown


def test_a_page_holds_settings_forks_decisions_and_the_result() -> None:
    console, file = printed()
    console.print(study_page(read(STUDY), Path("runs") / "first"))
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
    assert result_in_words(read(STUDY[:3]), Path("x")) == ["nothing has been observed yet"]
    assert "not over: 120 of 180 steps (67 %) done; fork 0 leads" in result_in_words(read(STUDY[:11]), Path("x"))[0]


def test_a_checkpoint_is_named_where_there_is_one(tmp_path: Path) -> None:
    assert "steps in all; no checkpoint is kept here" in str(result_in_words(read(STUDY), tmp_path))
    kept = tmp_path / "checkpoints" / "2-100.pt"
    kept.parent.mkdir()
    kept.touch()
    assert f"its checkpoint: {kept}" in str(result_in_words(read(STUDY), tmp_path))


def test_a_schedule_at_a_bound_says_so() -> None:
    schedule = Schedule([0.06, 0.1], [0, 10, 100])
    assert bound_in_words(schedule, (0.001, 0.1)) == [
        "it lies at the upper bound, 0.1: the best may lie beyond, move that up by a decade"
    ]
    assert "lower bound, 0.1: the best may lie beyond, move that down" in bound_in_words(schedule, (0.1, 1.0))[0]
    assert bound_in_words(schedule, (0.001, 1.0)) == []
    assert bound_in_words(Schedule([0.06, 0.1], [0, 60, 100]), (0.001, 0.1)) == [], "for the smaller part only"
    assert bound_in_words(schedule, ()) == []


def test_schedules_in_words() -> None:
    assert schedule_in_words(Schedule([0.1], [0, 50], 100)) == "rate 0.1 to the end"
    words = schedule_in_words(Schedule([0.1, 0.1, 0.2], [0, 1000, 1500, 2000], base="one_cycle"))
    assert words == "peak rate 0.1 until step 1,500, 0.2 to the end, times a one-cycle base"


def test_a_family_is_shown_while_it_runs_and_when_it_is_over() -> None:
    console, file = printed(terminal=True)
    events = read_journal(Path(__file__).parents[1] / "golden" / "journal-1-family.jsonl")
    last = max(i for i, event in enumerate(events) if isinstance(event, Interval))
    with Screen(console, events[:1]) as screen:
        for event in events[1 : last + 1]:
            screen.on_event(event)
        screen.on_step(2, 32)
    for part in ("152 of 180 steps (84 %)", "task", "forecast of its end", "leading", "running", "wild"):
        assert part in file.getvalue(), file.getvalue()
    lines = [line for i, event in enumerate(events) for line in event_lines(event, read(events[: i + 1]))]
    assert [line for line in lines if line.startswith("run 0 of task '")]
    assert not any("dropped" in line or "fork" in line for line in lines)
    console, file = printed()
    for line in result_in_words(read(events), Path("runs") / "family"):
        console.print(line)
    for part in ("answer: rates of 2 intervals", "its last 5 values", "'calm' is nearest to", "--task calm"):
        assert part in file.getvalue(), file.getvalue()
