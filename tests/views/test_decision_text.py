"""Decisions in English."""

import math

from paceline.study import Decided, Dropped, Event, Failure, Finished, Report, StudyState, because
from paceline.views.decision_text import decision_text, decision_texts
from tests.views.studies import EVENTS


def state_of(*events: Event) -> StudyState:
    return StudyState.of(events)


def test_a_clone_with_its_forecast_and_what_came_of_it() -> None:
    decision = decision_text(state_of(*EVENTS[:12]), 1)
    assert (decision.round, decision.step) == (2, 20)
    assert decision.sentences == (
        "At step 20, best first: 0: 1.6, 1: 1.8.",
        "Fork 0 continues to step 100.",
        "Fork 2 became a clone of fork 0 at step 20: peak rate 0.05 instead of 0.1 (its 0.5-quantile at step "
        "100, 0.3, is the best of 41 candidate rates). Its forecast was 0.3 (0.2 to 0.4) at step 100; the result was "
        "0.45, outside the band.",
        "Fork 1 at 1.8 is behind and dropped.",
    )


def test_a_forecast_before_it_is_known_what_came_of_it() -> None:
    sentences = decision_text(state_of(*EVENTS[:10]), 1).sentences
    assert sentences[2].endswith("Its forecast was 0.3 (0.2 to 0.4) at step 100.")


def test_forks_that_fail_or_fall_behind_together() -> None:
    lost = Report(2, 20, 60, (60,), {"raw": (math.nan,)}, Failure("not finite", step=60))
    parents = [EVENTS[2].__class__(n, None, 0, 20, EVENTS[2].schedule, 1) for n in (3, 4, 5)]  # type: ignore[attr-defined]
    behind = [Dropped(n, 20, because("behind", value=float(n))) for n in (1, 3, 4)]
    events = [*EVENTS[:4], *parents, *EVENTS[4:7], *behind, Dropped(5, 20, because("cloned", clone=6)), EVENTS[8], lost]
    sentences = decision_text(state_of(*events), 1).sentences
    assert sentences[-3:] == (
        "Fork 5 was dropped: its clone, fork 6, continues.",
        "Forks 1 at 1, 3 at 3 and 4 at 4 are behind and dropped.",
        "Fork 2 failed at step 60: the value at step 60 is not finite.",
    )
    assert sentences[1].endswith("; it failed.")


def test_the_end() -> None:
    ended = Decided(3, 100, (because("ended best", fork=2, value=0.45),), {}, 0.0)
    decision = decision_text(state_of(EVENTS[0], ended, Finished(2, 100, 0.45, "raw")), 0)
    assert decision.sentences == ("Fork 2 ended best, at 0.45 over its last observations.", "The study is over.")


def test_every_decision_of_a_study_is_explained() -> None:
    decisions = decision_texts(state_of(*EVENTS))
    assert [one.round for one in decisions] == [event.round for event in EVENTS if isinstance(event, Decided)]
    assert all(one.sentences for one in decisions)
    assert decisions[-1].sentences[-1] == "The study is over."
