"""Ask and tell by hand, and going on after an interruption anywhere."""

import os
from pathlib import Path

import numpy as np
import pytest

from paceline.errors import InputError, JournalError
from paceline.strategy import Dynamic
from paceline.study import Event, Failure, Finished, Interval, StudyState, describe_failure
from paceline.traces import Objective
from paceline.tuner import Tuner
from paceline.tuner.loop import objective_of
from tests.forged_lines import forge
from tests.tuner.loop_checks import check_advice, check_end, check_interruptions, check_order
from tests.tuner.toy_study import STRATEGIES, Interrupt, drive, loss, make


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_ends_within_its_cost_with_a_winner(name: str) -> None:
    check_end(name)


@pytest.mark.parametrize("name", ["horizon", "greedy"])
def test_reports_in_any_order_give_the_same_decisions(name: str) -> None:
    check_order(name)


# the loop is the same for all: with a model, which is slow, some of the lines, of each kind in one round or another
@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("horizon", 1),
        ("model", 12),
        pytest.param("model", 3, marks=pytest.mark.slow),
        ("keep-each", 2),
        ("paper", 5),
    ],
)
def test_cut_after_any_line_a_study_goes_on_with_the_same_decisions(name: str, every: int, tmp_path: Path) -> None:
    check_interruptions(name, tmp_path, every)


@pytest.mark.parametrize("name", ["horizon", "greedy", "grid"])
def test_when_every_fork_fails_the_study_ends_with_advice(name: str) -> None:
    check_advice(name)


def test_horizon_finds_the_rate_and_costs_what_it_says() -> None:
    tuner = drive(make("horizon"))
    assert tuner.total_steps <= 2.3 * 400
    schedule = tuner.result.schedule
    assert schedule is not None
    assert 0.003 < schedule.multipliers[-1] < 0.1


@pytest.mark.parametrize("cost", [1.4, 1.5, 1.7, 2.0, 2.3, 2.6, 3.0, 3.2, 4.0, 5.5])
def test_any_cost_is_kept(cost: float) -> None:
    strategy = Dynamic.horizon(cost=cost)
    for steps in (400, 1000, 1237):
        tuner = Tuner(lr=(1e-4, 1e-1), steps=steps, strategy=strategy)
        assert tuner.total_steps <= cost * steps


def test_no_plan_takes_more_steps_than_its_cost() -> None:
    for cost in np.linspace(1.375, 8.0, 137):
        plan = Dynamic.horizon(cost=float(cost)).plan
        for steps in (*range(40, 120, 7), 403, 1237, 4999):
            assert steps <= plan.for_steps(steps).total_steps(steps) <= cost * steps


def test_ask_waits_and_a_finished_study_stays_finished(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    first = tuner.ask()
    assert first
    assert tuner.ask() == []
    with pytest.raises(InputError, match="8 intervals are open"):
        tuner.result  # noqa: B018
    for p in first:
        tuner.tell(p, *loss(p))
    value = drive(tuner).result.value
    tuner.close()
    again = make("horizon", study=tmp_path)
    assert again.ask() is None
    assert again.result.value == value
    again.close()


def test_other_settings_on_the_same_folder_are_refused(tmp_path: Path) -> None:
    make("horizon", study=tmp_path).close()
    with pytest.raises(
        InputError,
        match=r"other settings \(strategy, total_steps\): pass the same ones.* it, total_steps \d+ and not total_steps",
    ):
        make("greedy", study=tmp_path)
    with pytest.raises(
        InputError, match=r"continue it, steps 400, total_steps \d+ and not steps 500, total_steps \d+, or choose"
    ):
        Tuner(lr=(1e-4, 1e-1), steps=500, study=tmp_path)
    make("horizon", study=tmp_path).close()


def test_a_decision_that_was_edited_is_noticed(tmp_path: Path) -> None:
    drive(make("horizon", study=tmp_path), most=8).close()

    def change(events: list) -> None:
        last = max(i for i, event in enumerate(events) if event["event"] == "proposed")
        events[last - 1]["fork"] += 90
        del events[last:]

    forge(tmp_path / "journal.jsonl", change)
    with pytest.raises(JournalError, match="was edited, restore it"):
        make("horizon", study=tmp_path)


def go_on(tuner: Tuner) -> int:
    """Report on intervals until the study is over, whatever is raised; how often something was."""
    failed = 0
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            try:
                tuner.tell(interval, *loss(interval))
            except (Interrupt, JournalError):
                failed += 1
    tuner.close()
    return failed


def decided(tuner: Tuner) -> list[str]:
    return [repr(event) for event in tuner.study.events if isinstance(event, Interval | Finished)]


@pytest.fixture(scope="module")
def undisturbed() -> list[str]:
    return decided(drive(make("horizon-1.5")))


@pytest.mark.parametrize("error", [Interrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("number", [3, 8, 9, 10])
def test_a_tuner_that_lives_on_after_a_failed_write_goes_on(
    number: int, error: BaseException, undisturbed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report fails; the last of a round; the decision after it; the first report after that."""
    tuner, sync, count = make("horizon-1.5", study=tmp_path), os.fsync, [0]

    def fsync(descriptor: int) -> None:
        count[0] += 1
        if count[0] == number:
            raise error
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert go_on(tuner) == 1
    assert decided(tuner) == undisturbed
    again = make("horizon-1.5", study=tmp_path)
    again.close()
    assert decided(again) == undisturbed


@pytest.mark.parametrize("study", [False, True], ids=["in memory", "on disk"])
def test_a_round_that_was_interrupted_before_its_decision_is_decided_at_the_next_call(
    study: bool, undisturbed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuner = make("horizon-1.5", study=tmp_path / "study" if study else None)

    def interrupt(*_) -> None:
        monkeypatch.undo()
        raise Interrupt

    monkeypatch.setattr(tuner, "_propose", interrupt)
    assert go_on(tuner) == 1
    assert decided(tuner) == undisturbed


@pytest.mark.parametrize("study", [False, True], ids=["in memory", "on disk"])
@pytest.mark.parametrize("number", [1, 8, 9, 10, 12, 17])
def test_an_interruption_between_disk_and_memory_is_made_good(
    number: int, study: bool, undisturbed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuner, count, append = make("horizon-1.5", study=tmp_path / "study" if study else None), [0], StudyState.append

    def interrupt(state: StudyState, event: Event) -> None:
        count[0] += 1
        if count[0] == number:
            raise Interrupt
        append(state, event)

    monkeypatch.setattr(StudyState, "append", interrupt)
    assert go_on(tuner) == 1
    assert decided(tuner) == undisturbed


def test_failed_forks_are_never_cloned_and_the_study_goes_on() -> None:
    events = []
    tuner = make("horizon-5", on_event=events.append)
    while (intervals := tuner.ask()) is not None:
        for p in intervals:
            steps, values = loss(p)
            if p.schedule.multipliers[-1] > 0.02:
                values["averaged"][-1] = float("nan")
            tuner.tell(p, steps, values)
    failed = {f.id for f in tuner.history.forks if f.failure}
    assert failed
    assert not {e.parent for e in events if isinstance(e, Interval)} & failed
    assert tuner.result.fork not in failed


@pytest.mark.filterwarnings(
    "ignore:no value became clearly better", "ignore:raw and averaged weights have had the same"
)
@pytest.mark.parametrize("values", [lambda t: 1.0, lambda t: 1.0 + 0.01 * t, lambda t: -5.0 + 0.001 * t])
def test_values_that_never_change_get_worse_or_are_negative(values) -> None:
    for name in ("horizon", "greedy"):
        tuner = make(name)
        while (intervals := tuner.ask()) is not None:
            for p in intervals:
                steps = list(range(p.start + 5, p.stop + 1, 5))
                tuner.tell(p, steps, {"raw": [values(t) for t in steps], "averaged": [values(t) for t in steps]})
        assert tuner.result.value is not None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tuner(lr=(1e-1, 1e-4), steps=100), "swap them"),
        (lambda: Tuner(lr=(0.0, 1e-4), steps=100), "0 < low < high"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=20), "20 steps are too few for rungs.*train for 40 steps or more"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=0), "at least 1, got 0"),
        (lambda: Dynamic.horizon(forks=0), "forks must be at least 1, got 0"),
        (lambda: Dynamic.greedy(forks=0), "forks must be at least 1, got 0"),
        (lambda: Dynamic.horizon(cost=0.5), "costs at least 1.375 runs, got 0.5"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=400, cost=float("inf")), "finite number of runs, got inf"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=19, cost=1), "at least 20, got 19"),
        (lambda: Dynamic.horizon(initial_rates=(0.1,)), "8 rates, one per fork, got 1"),
        (lambda: Dynamic.greedy(link="cubic"), "no link is registered as 'cubic': use one of linear"),
        (lambda: Dynamic.greedy(order=4), "order 1, 2 or 3"),
        (lambda: Dynamic.greedy(intervals=0), "intervals must be at least 1, got 0"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=100, seed=-1), "seed must not be negative, got -1"),
    ],
)
def test_bad_settings_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [
        ([], [], "reported nothing between steps 0 and 10"),
        ([5, 5], [1.0, 1.0], r"must increase within \(0, 10\]"),
        ([5, 11], [1.0, 1.0], r"must increase within \(0, 10\]"),
        ([5, 10], [1.0], "one value per step"),
        ([5], {"mean": [1.0]}, "one value per step"),
    ],
)
def test_bad_reports_say_what_to_do(steps, values, message: str) -> None:
    tuner = make("horizon")
    intervals = tuner.ask()
    assert intervals
    with pytest.raises(InputError, match=message):
        tuner.tell(intervals[0], steps, values)
    tuner.tell(intervals[0], *loss(intervals[0]))
    with pytest.raises(InputError, match="no open interval like this"):
        tuner.tell(intervals[0], *loss(intervals[0]))


def test_a_failure_reported_twice_is_refused_before_it_is_written(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    intervals = tuner.ask()
    assert intervals
    tuner.fail(intervals[0], "out of memory")
    with pytest.raises(InputError, match="no open interval like this"):
        tuner.fail(intervals[0], "out of memory")
    tuner.close()
    again = drive(make("horizon", study=tmp_path))
    assert again.result.fork is not None
    again.close()


@pytest.mark.parametrize("mode", ["min", "max"])
def test_an_interval_that_ends_at_an_absurd_value_has_failed(mode: str) -> None:
    sign = 1 if mode == "min" else -1
    tuner = make(Dynamic.greedy(forks=2, intervals=4), mode=mode)
    high, low = sorted(tuner.ask() or [], key=lambda interval: -interval.multiplier)
    tuner.tell(high, [50, 100], [sign * 2.0, sign * 4e4])
    tuner.tell(low, [50, 100], [sign * 2.0, sign * 1.5])
    failure = tuner.history.fork(high.fork).failure
    assert failure is not None
    assert failure == Failure("diverged", f"{sign * 4e4:.4g} after {sign * 2} at first", step=100)
    assert describe_failure(failure).startswith("it has diverged by step 100: ")
    (trace,) = (fork.trace for fork in tuner.history.forks if fork.id == high.fork)
    assert trace is not None
    assert (trace.failed, trace.last_step) == (True, 100)


def test_an_objective_is_refused_as_a_mode() -> None:
    with pytest.raises(InputError, match="pass mode='max'"):
        objective_of(Objective("max", "log"))
