"""A warm start that begins with a range test, and becomes a cold start if the task is unlike its family."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paceline import Objective, Trace, Tuner
from paceline.settings import NewTaskSettings
from paceline.strategy import Fork, SingleRun
from paceline.strategy.newtask import NewTask
from paceline.strategy.newtask.cold_start import below_tested, other_loss, wasted_interval
from paceline.study import Interval
from paceline.traces import Schedule
from tests.strategy.newtask.example_family import SMALL, SPACE, NewTaskExample, runs_of_the_family

COLD = replace(SMALL, cold_start=True)


def curve(
    interval: Interval, *, scale: float = 1.0, best: float = 0.5, noise: float = 0.3
) -> tuple[list[int], dict[str, list[float]]]:
    """Values of a run that improves most at `best`, and is undone by rates far above it; averaged ones lag behind."""
    steps = np.arange(interval.start, interval.stop + 1)
    x = SPACE.lr_range.to_unit(interval.schedule(np.arange(interval.stop)))
    fallen = np.concatenate([[0.0], np.cumsum(1 - 6 * np.maximum(0.0, np.abs(x - best) - 0.1))]) / 20
    raw = scale * (5.0 - fallen[steps])
    averaged = scale * (5.0 - fallen[(steps / 1.15).astype(int)]) - noise * (steps > 0)
    kept = slice(1, None) if interval.start else slice(None)
    return steps[kept].tolist(), {"raw": raw[kept].tolist(), "averaged": averaged[kept].tolist()}


def train(strategy: NewTask, study: Path | None = None, *, most: int = 99, fails: int | None = None, **task) -> Tuner:
    """A run of a task, or its first intervals; one fork may fail."""
    tuner = Tuner(lr=SPACE.lr_range, steps=SPACE.steps, strategy=strategy, study=study)
    while most > 0 and (intervals := tuner.ask()) is not None:
        for interval in intervals[:most]:
            most -= 1
            if interval.fork == fails:
                tuner.fail(interval, "the values are not finite")
            else:
                tuner.tell(interval, *curve(interval, **task))
    return tuner


def kinds(tuner: Tuner) -> list[str]:
    """What sorts of reasons there were, in order."""
    return [reason.kind for decision in tuner.study.decisions for reason in decision.reasons]


def cold_intervals(**task) -> list[tuple[int, int, list[float]]]:
    """What a cold start of the same task does."""
    tuner = Tuner(lr=SPACE.lr_range, steps=SPACE.steps, strategy=SingleRun())
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            tuner.tell(interval, *curve(interval, **task))
    return [(i.start, i.stop, i.schedule.multipliers.tolist()) for i in tuner.study.intervals]


def own_intervals(tuner: Tuner, forks: set[int]) -> list[tuple[int, int, list[float]]]:
    return [(i.start, i.stop, i.schedule.multipliers.tolist()) for i in tuner.study.intervals if i.fork in forks]


def test_a_task_like_its_family_follows_it_after_the_range_test(new: NewTaskExample) -> None:
    tuner = train(new.strategy(COLD))
    assert kinds(tuner)[0] == "range test"
    schedule = tuner.result.schedule
    assert schedule is not None
    assert (schedule.steps, len(schedule.multipliers)) == (60, 3)
    assert [fork.id for fork in tuner.history.forks] == [0, 1]


@pytest.mark.parametrize(
    ("task", "why"), [({"scale": 30.0}, "other loss"), ({"best": -0.4, "noise": 0.0}, "unsuitable rate")]
)
def test_a_task_unlike_its_family_becomes_exactly_a_cold_start(new: NewTaskExample, task: dict, why: str) -> None:
    tuner = train(new.strategy(COLD), **task)
    assert why in kinds(tuner)
    assert own_intervals(tuner, {0, 1}) == cold_intervals(**task)
    assert tuner.result.fork == 1


def test_a_first_interval_that_fails_starts_again_without_the_family(new: NewTaskExample) -> None:
    tuner = train(new.strategy(COLD), fails=1)
    assert "first interval failed" in kinds(tuner)
    assert own_intervals(tuner, {0, 2}) == cold_intervals()
    assert tuner.result.fork == 2


def test_a_rate_without_noise_starts_again_without_the_family(new: NewTaskExample) -> None:
    tuner = train(new.strategy(COLD), noise=0.0)
    assert "rate too low" in kinds(tuner)
    assert own_intervals(tuner, {0, 2}) == cold_intervals(noise=0.0)


def test_several_forks_follow_one_range_test(new: NewTaskExample) -> None:
    strategy = new.strategy(COLD, forks=2)
    tuner = train(strategy)
    assert [(i.fork, i.start) for i in tuner.study.intervals][:3] == [(0, 0), (1, 0), (2, 0)]
    assert sum(i.stop - i.start for i in tuner.study.intervals) == strategy.total_steps(tuner.goal) == 120 + 12


def test_it_goes_on_after_a_kill_with_the_same_decisions(new: NewTaskExample, tmp_path: Path) -> None:
    strategy = new.strategy(COLD)
    whole = train(strategy, tmp_path / "whole", fails=1)
    whole.close()
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in (4, len(lines) // 2, len(lines) - 3):
        folder = tmp_path / f"cut{cut}"
        shutil.copytree(tmp_path / "whole", folder)
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]))
        again = train(strategy, folder, fails=1)
        again.close()
        assert again.study.intervals == whole.study.intervals
        assert again.result.value == whole.result.value


def test_no_progress_starts_again_without_the_family(new: NewTaskExample) -> None:
    tuner = train(new.strategy(COLD), best=0.15, noise=0.1)
    assert "no progress" in kinds(tuner)
    assert own_intervals(tuner, {0, 2}) == cold_intervals(best=0.15, noise=0.1)


def test_the_range_test_limits_all_rates(new: NewTaskExample) -> None:
    history = train(new.strategy(COLD), most=1, best=0.15, noise=0.1).history
    low, high = (Interval(1, None, 0, 20, Schedule([rate], [0, 20], 60), 2) for rate in (0.001, 1.0))
    assert below_tested(history, [low]) == ((low,), ())
    (same, lowered), (reason,) = below_tested(history, [low, high])
    assert same.multiplier == low.multiplier
    assert lowered.multiplier == reason["rate"] < 1.0


def test_a_first_value_far_outside_the_known_ones_is_another_loss() -> None:
    known, objective = runs_of_the_family(), Objective()
    assert other_loss(known, objective, 5.0) is None
    assert other_loss(known, objective, 5.1) is None
    assert other_loss(known, objective, 8.0)["value"] == 8.0
    assert other_loss(known, Objective(transform="log"), -1.0).kind == "other loss"


def test_progress_without_noise_is_a_rate_that_is_wasted_interval() -> None:
    steps, schedule = np.arange(0, 21, 2), Schedule([0.01], [0, 20], 60)
    raw = 5.0 - np.log1p(steps)
    late, noisy = 5.0 - np.log1p(steps / 1.15), 4.0 - np.log1p(steps)

    def fork(averaged: np.ndarray) -> Fork:
        traces = (Trace(steps, values, schedule) for values in (raw, averaged))
        return Fork(1, None, 0, schedule, *[next(traces)] * 2, next(traces))

    assert wasted_interval(fork(late), planned=0.01).kind == "rate too low"
    assert wasted_interval(fork(late), planned=0.02) is None  # the plan has noticed it
    assert wasted_interval(fork(noisy), planned=0.01) is None
    assert wasted_interval(fork(raw), planned=0.01) is None  # nothing is known of averaged weights
    raw = 5.0 + np.log1p(steps)
    assert wasted_interval(fork(raw + 0.1), planned=0.02).kind == "no progress"


def test_studies_of_0_1_0_go_on_without_a_range_test(new: NewTaskExample) -> None:
    former = new.strategy(replace(NewTaskSettings(), cold_start=False, alphas=(0.7, 0.3)))
    begun = former.to_json()
    assert "cold_start" not in begun
    plain = {**begun, "alphas": list(begun["alphas"])}
    plain["family"] = {**begun["family"], "tasks": list(begun["family"]["tasks"])}
    assert new.strategy(NewTaskSettings()).as_begun(plain).to_json() == begun
