"""Decisions in words."""

import math

from paceline.study import Decided, Dropped, Event, Finished
from paceline.views.explained import all_explained, explained
from tests.views.web.studies import EVENTS


def test_a_clone_with_its_forecast_and_what_came_of_it() -> None:
    told = explained(EVENTS[6:13], "averaged")
    assert (told.round, told.step) == (2, 20)
    assert told.sentences == (
        "At step 20, best first: 0, 1.",
        "Fork 0 goes on to step 100.",
        "Fork 2 became a clone of fork 0 at step 20: peak rate 0.05 in place of 0.1, because its 0.5-quantile at step "
        "100, 0.3, is the best of 41 admitted rates. Its forecast was 0.3 (0.2 to 0.4) at step 100; it came to 0.45, "
        "outside the band.",
        "Fork 1 at 1.8 is behind and dropped.",
    )


def test_a_forecast_before_it_is_known_what_came_of_it() -> None:
    assert explained(EVENTS[6:11], "averaged").sentences[2].endswith("Its forecast was 0.3 (0.2 to 0.4) at step 100.")


def test_forks_that_fail_or_fall_behind_together() -> None:
    lost = Failed(2, 20, 60, "the value at step 60 is not finite", (60,), {"raw": (math.nan,)})
    events: list[Event] = [EVENTS[6], *(Dropped(n, 20, f"its value {n} is behind") for n in (1, 3, 4))]
    told = explained([*events, Dropped(5, 20, "fork 6 goes on from it"), *EVENTS[9:11], lost], "raw").sentences
    assert told[-3:] == (
        "Fork 5 was dropped: fork 6 goes on from it.",
        "Forks 1 at 1, 3 at 3 and 4 at 4 are behind and dropped.",
        "Fork 2 failed at step 60: the value at step 60 is not finite.",
    )
    assert told[1].endswith("; it failed.")


def test_the_end() -> None:
    told = explained([Decided(3, 100, ("fork 2 ended best, at 0.45",), {}, 0.0), Finished(2, 100, 0.45, "raw")])
    assert told.sentences == ("Fork 2 ended best, at 0.45.", "The study is over.")


def test_every_decision_of_a_study_is_explained() -> None:
    told = all_explained(EVENTS, "averaged")
    assert [one.round for one in told] == [event.round for event in EVENTS if isinstance(event, Decided)]
    assert all(one.sentences for one in told)
    assert told[-1].sentences[-1] == "The study is over."
