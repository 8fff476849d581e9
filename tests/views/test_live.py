"""A study while it runs: redrawn on a terminal, plain lines elsewhere."""

from paceline.study import Interval
from paceline.views.live import LineDisplay, ScreenDisplay, progress_display
from tests.views.consoles import string_console
from tests.views.studies import STUDY, golden


def test_the_view_suits_where_the_output_goes() -> None:
    plain = string_console()
    assert isinstance(progress_display(plain[0]), LineDisplay)
    assert isinstance(progress_display(string_console(terminal=True)[0]), ScreenDisplay)
    with progress_display(plain[0], STUDY[:5], title="first") as view, progress_display(None) as silent:
        for event in STUDY[5:]:
            view.on_event(event)
            view.on_step(0, 0)
            silent.on_event(event)
    lines = plain[1].getvalue().splitlines()
    assert lines[0] == "first: fork 1 reached step 20: 1.8 at rate 0.008; 40 of 180 steps (22 %) done"


def test_the_screen_shows_progress_inside_an_interval() -> None:
    console, file = string_console(terminal=True)
    with ScreenDisplay(console, STUDY[:8]) as screen:
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


def test_a_family_on_the_screen() -> None:
    console, file = string_console(terminal=True)
    events = golden("journal-1-family")
    last = max(i for i, event in enumerate(events) if isinstance(event, Interval))
    with ScreenDisplay(console, events[:1]) as screen:
        for event in events[1 : last + 1]:
            screen.on_event(event)
        screen.on_step(2, 32)
    for part in ("152 of 180 steps (84 %)", "task", "forecast of its end", "leading", "running", "wild"):
        assert part in file.getvalue(), file.getvalue()
