"""Answers of a family are read from the details of its latest decisions."""

from paceline.study import Created, Decided, Interval, StudyState, answers_in, best_in, embedding_in
from paceline.traces import Schedule

SCHEDULE, OTHER = Schedule.constant(0.1, 100), Schedule.constant(0.2, 100)
ANSWER = {
    "task": "calm",
    "schedule": OTHER.to_json(),
    "median": 0.3,
    "low": 0.2,
    "high": 0.5,
    "runs": 4,
    "failed": 1,
}
EVENTS = [
    Created({"tasks": ["calm", "wild"], "steps": 100}),
    Decided(1, 0, (), {"embedding": [{"task": "calm", "at": [0.0, 1.0]}]}),
    Interval(3, None, 0, 100, SCHEDULE, 1),
    Decided(2, 100, (), {"best": [{"task": "calm", "fork": 3, "value": 0.4}]}),
    Decided(3, 100, (), {"answers": [ANSWER]}),
]


def test_a_family_has_answers_only_when_it_is_over() -> None:
    assert answers_in(StudyState.of(EVENTS[:4])) == {}
    answer = answers_in(StudyState.of(EVENTS))["calm"]
    assert (answer.median, answer.low, answer.high, answer.runs, answer.failed) == (0.3, 0.2, 0.5, 4, 1)
    assert answer.schedule == OTHER


def test_the_best_run_comes_with_the_schedule_of_its_fork() -> None:
    best = best_in(StudyState.of(EVENTS))
    assert list(best) == ["calm"]
    assert (best["calm"].fork, best["calm"].value, best["calm"].schedule) == (3, 0.4, SCHEDULE)
    assert best_in(StudyState.of(EVENTS), end=3) == {}


def test_the_embedding_is_that_of_the_latest_model() -> None:
    later = Decided(4, 100, (), {"embedding": [{"task": "calm", "at": [2.0, 3.0]}]})
    assert embedding_in(StudyState.of(EVENTS))["calm"].tolist() == [0.0, 1.0]
    assert embedding_in(StudyState.of([*EVENTS, later]))["calm"].tolist() == [2.0, 3.0]
