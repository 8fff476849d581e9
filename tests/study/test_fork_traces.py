import numpy as np
import pytest

from paceline.study import Created, Failure, ForkTraces, Interval, Report, StudyState, column
from paceline.study.fork_traces import fork_traces, sound_part
from paceline.traces import Objective, Schedule

FIRST = Schedule([0.1], [0, 20], 40)
SECOND = Schedule([0.1, 0.05], [0, 20, 40], 40)
CLONE = Schedule([0.1, 0.2], [0, 20, 40], 40)
EVENTS = [
    Created({"tasks": ["calm", "wild"]}),
    Interval(0, None, 0, 20, FIRST, 1, task=1),
    Report(0, 0, 20, (10, 20), {"raw": (3.0, 2.0), "averaged": (2.5, 1.5)}),
    Interval(0, None, 20, 40, SECOND, 2, task=1),
    Interval(2, 0, 20, 40, CLONE, 2, task=1),
    Report(2, 20, 40, (30, 40), {"raw": (1.0, 0.5)}),
]


def test_a_trace_holds_what_its_fork_observed_under_the_schedule_it_ran() -> None:
    first, clone = fork_traces(StudyState.of(EVENTS), Objective(weights="averaged"))
    assert (first.steps.tolist(), first.values.tolist()) == ([10, 20], [2.5, 1.5])
    assert first.schedule == FIRST  # the second interval has no report yet
    assert (first.name, first.task) == ("0", "wild")
    assert clone.parent is first
    assert clone.fork_step == 20
    assert clone.values.tolist() == [1.0, 0.5]  # only raw values were observed


def test_only_forks_that_have_grown_are_built_anew() -> None:
    traces, state = ForkTraces(Objective(), "raw"), StudyState.of(EVENTS)
    first, clone = (traces.of(state, state.forks[fork]) for fork in (0, 2))
    state.append(Report(0, 20, 40, (40,), {"raw": (1.5,)}))
    assert traces.of(state, state.forks[2]) is clone
    longer = traces.of(state, state.forks[0])
    assert longer is not None
    assert longer is not first
    assert longer.schedule == SECOND


def test_a_fork_without_a_report_has_no_trace() -> None:
    state = StudyState.of(EVENTS[:2])
    assert ForkTraces(Objective(), "raw").of(state, state.forks[0]) is None
    assert fork_traces(state, Objective()) == []


@pytest.mark.parametrize(
    ("values", "stop", "steps", "kept"),
    [
        ((3.0, np.nan), 20, [10, 20], [3.0, np.nan]),
        ((3.0, 1e200), 20, [10, 20], [3.0, np.nan]),
        ((3.0, 2.0), 20, [10, 20, 21], [3.0, 2.0, np.nan]),
        ((np.nan, 2.0), 20, [20], [np.nan]),
    ],
)
def test_a_failed_report_ends_with_a_value_that_is_not_finite(values, stop: int, steps, kept) -> None:
    report = Report(0, 0, stop, (10, 20), {"raw": values}, Failure("not finite"))
    at, observed = sound_part(report, values)
    assert at.tolist() == steps
    assert np.array_equal(observed, kept, equal_nan=True)


def test_a_column_of_other_weights_stands_in() -> None:
    assert column({"raw": (1.0,)}, "averaged") == (1.0,)
    assert column({}, "raw") == ()
