"""One run without forks through the loop: range test, run, corrections, divergence."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from paceline import Schedule, Tuner, tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import SINGLE_RUN, SingleRun
from paceline.study import because
from paceline.training import Observation


def quadratic(noise: float = 1.0, seed: int = 0) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise), seed)


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_tune_at_cost_one_stays_within_one_run_and_beats_the_middle_of_the_bounds(noise: float) -> None:
    bounds, steps = (1e-4, 10.0), 1000
    result = tune(lambda: quadratic(noise), steps=steps, lr=bounds, cost=1)
    assert sum(int(f.schedule.change_points[-1]) - f.start for f in result.history.forks) <= steps
    assert result.schedule is not None
    assert result.schedule(result.schedule.steps - 1) < 0.01 * result.schedule.multipliers.max()
    middle = QuadraticTraining(Quadratic(noise))
    *_, (_, untuned) = middle.advance(type(result.schedule).of(SINGLE_RUN.base, 1e-3**0.5, steps), steps)
    assert isinstance(untuned, dict)
    assert result.history.forks[-1].last_values["raw"] < untuned["raw"]
    assert set(result.weights()) == {"theta"}


def test_a_run_that_diverges_begins_again_lower_within_the_budget() -> None:
    tuner = Tuner(lr=(1e-4, 1.0), steps=1000, cost=1.0)
    taken, divergences = 0, 0
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            steps = np.arange(interval.start + 1, interval.stop + 1)
            rate = np.array([interval.schedule(int(step)) for step in steps])
            taken += len(steps)
            if interval.fork == 0:
                drop = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (np.log10(rate) + 1.0)))
                tuner.tell(interval, steps.tolist(), {"raw": drop.tolist(), "averaged": (1.01 * drop).tolist()})
            elif interval.fork < 4:  # first by values that are not finite, then by worse ones
                divergences += 1
                bad = float("nan") if interval.fork == 1 else 9.0
                tuner.tell(interval, steps.tolist(), {"raw": [bad] * len(steps), "averaged": [2.0] * len(steps)})
            else:
                good = (2.0 - 0.2 * np.log(steps)).tolist()
                tuner.tell(interval, steps.tolist(), {"raw": good, "averaged": good})
    assert divergences == 3
    assert taken <= 1000
    peaks = [fork.schedule.multipliers.max() for fork in tuner.history.forks[1:]]
    assert all(later < earlier for earlier, later in pairwise(peaks))
    assert tuner.result.fork == 4


def test_a_run_that_diverges_at_every_rate_tries_the_lowest_and_ends_with_advice() -> None:
    tuner, low = Tuner(lr=(1e-3, 1.0), steps=1000, cost=1.0), 1e-3
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            steps = np.arange(interval.start + 1, interval.stop + 1)
            rates = np.array([interval.schedule(int(step)) for step in steps])
            drop = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (np.log10(rates) + 1.5)))
            values = drop if interval.fork == 0 else np.full(len(steps), 9.0)
            tuner.tell(interval, steps.tolist(), {"raw": values.tolist(), "averaged": (1.01 * values).tolist()})
    peaks = [float(fork.schedule.multipliers.max()) for fork in tuner.history.forks[1:]]
    assert min(peaks) == low
    assert peaks.count(low) == 1
    assert tuner.study.decisions[-1].reasons == (because("all tries diverged"),)


class Brittle(QuadraticTraining):
    """Breaks from step 300 on at rates above 0.2."""

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        for step, value in super().advance(schedule, stop):
            if step >= 300 and schedule(step) > 0.2:
                raise FloatingPointError("overflow")
            yield step, value


@pytest.mark.parametrize("training", [Brittle, QuadraticTraining])
def test_forks_that_break_go_on_from_their_checkpoint(training: type[QuadraticTraining]) -> None:
    bounds = (1e-2, 1.5) if training is Brittle else (0.5, 50.0)
    result = tune(lambda: training(Quadratic(0.3)), steps=1000, lr=bounds, cost=1)
    forks = result.history.forks
    assert sum(int(f.schedule.change_points[-1]) - f.start for f in forks) <= 1000
    assert result.history.forks[-1].last_values["raw"] < 0.5
    if training is Brittle:
        assert forks[1].failure
        assert forks[2].parent == 1
        assert forks[2].start > 0


def test_a_run_that_goes_back_says_which_rates_it_was_trained_at() -> None:
    trained = dict[int, float]()

    class Noted(Brittle):
        """Notes the rates that it was trained at."""

        def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
            start = self.steps_done
            yield from super().advance(schedule, stop)
            rates.append((start, schedule(np.arange(start, stop))))

    rates: list[tuple[int, np.ndarray]] = []
    result = tune(lambda: Noted(Quadratic(0.3)), steps=1000, lr=(1e-2, 1.5), cost=1)
    assert result.schedule is not None
    for start, values in rates[1:]:  # without the range test; what was trained last at a step counts
        trained |= {start + i: float(value) for i, value in enumerate(values)}
    steps = sorted(trained)
    assert steps == list(range(result.schedule.steps))
    np.testing.assert_allclose(result.schedule(np.array(steps)), [trained[step] for step in steps], rtol=1e-12)


def test_a_study_of_one_run_is_continued_with_the_same_decisions(tmp_path: Path) -> None:
    def study(folder: Path) -> "list[float]":
        result = tune(quadratic, steps=400, lr=(1e-4, 10.0), cost=1, study=folder)
        assert result.schedule is not None
        return result.schedule.multipliers.tolist()

    whole = study(tmp_path / "whole")
    lines = (tmp_path / "whole" / "journal.jsonl").read_text().splitlines(keepends=True)
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "study.json").write_text((tmp_path / "whole" / "study.json").read_text())
    (cut / "journal.jsonl").write_text("".join(lines[:3]))
    assert study(cut) == whole


class Overflowing(QuadraticTraining):
    """Observed every `every` steps; not a number from step `since` on if the rate is or was above 0.05."""

    def __init__(self, every: int, since: int) -> None:
        super().__init__(Quadratic(0.3), every=every)
        self.since = since

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        for step, value in super().advance(schedule, stop):
            diverges = step >= self.since and np.max(schedule(np.arange(self.since - 1, step))) > 0.05
            yield step, dict.fromkeys(("raw", "averaged"), float("nan")) if diverges else value


@pytest.mark.parametrize(("every", "since"), [(1, 1), (10, 1), (25, 1), (5, 600)])
def test_not_a_number_in_the_range_test_or_late_still_ends_with_a_trained_run(every: int, since: int) -> None:
    result = tune(lambda: Overflowing(every, since), steps=1000, lr=(1e-3, 5.0), cost=1)
    forks = result.history.forks
    assert any(fork.failure and fork.failure.kind == "not finite" for fork in forks[: 1 if since == 1 else None])
    assert result.value is not None
    assert result.value < 0.7 * Quadratic(0.3).loss(np.ones(Quadratic(0.3).dims))
    assert result.weights()
    taken = [
        (f.trace.last_step if f.failure and f.trace else int(f.schedule.change_points[-1])) - f.start for f in forks
    ]
    assert sum(taken) <= 1000


def test_a_range_test_that_is_observed_once_ends_the_study_with_a_reason() -> None:
    tuner = Tuner(lr=(1e-3, 1.0), steps=400, cost=1)
    intervals = tuner.ask()
    assert intervals
    tuner.tell(intervals[0], [40], {"averaged": [1.0]})
    assert tuner.ask() is None
    assert tuner.study.decisions[-1].reasons == (because("range test observed once", steps=40),)


def test_it_may_restart_and_costs_one_run() -> None:
    tuner = Tuner(lr=(1e-3, 1.0), steps=400, strategy=SingleRun())
    assert SingleRun.restarts
    assert tuner.total_steps == 400
    assert SingleRun().to_json() == {"strategy": "single", "weights": "averaged"}
