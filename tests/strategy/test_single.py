"""One run without forks: range test, corrections, coming apart; as a controller and through the loop."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from paceline import InputError, LearningRateRange, Schedule, Tuner, tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import Order, SinglePace, SingleRun, horizon
from paceline.strategy.dynamic import Dynamic
from paceline.strategy.single import BASE, check_steps, correction, peaks_of_sweep, progress, sweep_steps, worse
from paceline.study import because
from paceline.training import Observation

BOUNDS = LearningRateRange(1e-4, 1.0)
RATES = np.linspace(-4.0, 0.0, 101)


def after_sweep(steps: int = 1000, peak: float = -2.0) -> SinglePace:
    """A controller whose range test dropped from 2 to 1 around a rate, and came apart at none."""
    pace = SinglePace(BOUNDS, steps)
    while pace.began is None:
        loss = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (np.log10(pace.rate) - peak)))
        order = pace.observe(float(loss))
    assert order is Order.RESTORE
    return pace


def test_the_range_test_sweeps_over_the_bounds_in_a_twentieth_of_the_steps() -> None:
    pace = SinglePace(BOUNDS, 1000)
    rates = []
    while pace.began is None:
        rates.append(pace.rate)
        pace.observe(2.0)
    assert len(rates) == sweep_steps(1000) == 50
    np.testing.assert_allclose(rates, np.geomspace(1e-4, 1.0, 50))


@pytest.mark.parametrize(("steps", "taken"), [(20, 4), (100, 20), (200, 40), (799, 40), (800, 40), (2000, 100)])
def test_in_a_short_run_the_range_test_is_long_enough_to_be_read(steps: int, taken: int) -> None:
    assert sweep_steps(steps) == taken


def test_the_peak_is_where_most_of_the_drop_is_reached_but_well_below_where_it_is_lost() -> None:
    drop = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (RATES + 2.0)))
    first, highest = peaks_of_sweep(RATES, drop)
    assert first == pytest.approx(-1.9, abs=0.15)
    assert highest == np.inf
    first, highest = peaks_of_sweep(RATES, np.where(RATES > -1.5, 1e6, drop))
    assert first == pytest.approx(-1.6 - 0.75, abs=0.15)
    assert highest == pytest.approx(-1.6 - 0.15, abs=0.15)
    ends = np.where(RATES < 0.0, drop, np.inf)
    assert peaks_of_sweep(RATES, ends)[1] == pytest.approx(-0.15, abs=0.05)


def test_a_range_test_that_comes_apart_ends_early_and_gives_its_steps_to_the_run() -> None:
    pace = SinglePace(BOUNDS, 1000)
    for loss in [2.0] * 10 + [1.0] * 20 + [float("nan")]:
        order = pace.observe(loss)
    assert order is Order.RESTORE
    assert pace.began == 31
    assert pace.rate < pace.rate_at(31 + 100)


def test_the_run_follows_the_base_to_the_end_of_the_steps() -> None:
    pace = after_sweep()
    length = 1000 - 50
    factors = BASE.factor(np.array([0.0, 100.0, 400.0, 949.0]), length)
    rates = np.array([pace.rate_at(50 + t) for t in (0, 100, 400, 949, 2000)])
    np.testing.assert_allclose(rates[:4], 10**pace.peak * factors)
    assert rates[4] == rates[3]


def test_progress_is_the_slope_against_log_time() -> None:
    steps = np.arange(10.0, 100.0)
    assert progress(steps, 3.0 - 0.5 * np.log(steps)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("noise", "gain", "move"),
    [(0.9, 1.0, 0.0), (0.9 * 1e3, 1.0, -0.2), (-0.14, 1.0, 0.15), (1.0, 0.0, -0.2), (1.0, -1.0, -0.2)],
)
def test_much_noise_for_little_progress_lowers_the_peak(noise: float, gain: float, move: float) -> None:
    assert correction(noise, gain, 0.5) == pytest.approx(move)


def test_checks_are_log_spaced_from_6_to_50_percent() -> None:
    checks = check_steps(10_000)
    assert (checks[0], checks[-1], len(checks)) == (600, 5000, 12)
    assert np.ptp(np.diff(np.log(checks))) < 0.01


def test_the_peak_moves_at_checks_alone_and_stays_within_the_bounds() -> None:
    for excess, direction in ((5.0, -1), (-1.0, 1)):
        pace, moved = after_sweep(), []
        start = pace.peak
        while pace.done < 1000:
            before, time = pace.peak, pace.time
            averaged = 2.0 - 0.2 * np.log(time + 1)
            order = pace.observe(min(averaged + excess, 2.5), averaged if pace.wants_average else None)
            if pace.peak != before:
                moved.append(pace.done)
                assert order is Order.KEEP
        assert set(moved) <= {50 + check for check in check_steps(950)}
        assert direction * (pace.peak - start) > 0.5
        assert -4.0 <= pace.peak <= 0.0


def test_coming_apart_goes_back_lower_and_never_above_again() -> None:
    pace = after_sweep()
    peak, orders = pace.peak, [pace.observe(10.0) for _ in range(20)]
    assert orders.count(Order.RESTORE) == 5
    assert pace.peak == pace.ceiling < peak - 1.0
    assert pace.observe(float("nan")) is Order.RESTORE
    ceiling = pace.ceiling
    while pace.done < 1000:
        pace.observe(1.0, 2.0 - 0.1 * np.log(pace.time + 1) if pace.wants_average else None)
    assert pace.peak <= ceiling


def test_a_loss_that_is_never_finite_still_gives_a_rate() -> None:
    pace = SinglePace(BOUNDS, 100)
    for _ in range(100):
        pace.observe(float("nan"))
    assert np.isfinite(pace.rate)


def test_negative_losses_have_a_worse_side_too() -> None:
    assert worse(-2.0, 1.5) == -1.0
    assert worse(2.0, 1.5) == 3.0


def test_the_state_goes_through_json() -> None:
    pace = after_sweep()
    for _ in range(300):
        pace.observe(1.0, 0.9)
    copy = SinglePace.from_dict(json.loads(json.dumps(pace.to_dict())))
    assert copy == pace
    assert copy.observe(1.0, 0.9) == pace.observe(1.0, 0.9)
    assert copy == pace


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least 20, got 10"):
        SinglePace(BOUNDS, 10)


# through the loop


def quadratic(noise: float = 1.0, seed: int = 0) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise), seed)


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_tune_at_cost_one_stays_within_one_run_and_beats_the_middle_of_the_bounds(noise: float) -> None:
    bounds, steps = (1e-4, 10.0), 1000
    found = tune(lambda: quadratic(noise), steps=steps, lr=bounds, cost=1)
    assert sum(int(f.schedule.change_points[-1]) - f.start for f in found.history.forks) <= steps
    assert found.schedule is not None
    assert found.schedule(found.schedule.steps - 1) < 0.01 * found.schedule.multipliers.max()
    middle = QuadraticTraining(Quadratic(noise))
    *_, (_, untuned) = middle.advance(type(found.schedule).of(BASE, 1e-3**0.5, steps), steps)
    assert isinstance(untuned, dict)
    assert found.history.forks[-1].last_values["raw"] < untuned["raw"]
    assert set(found.weights()) == {"theta"}


def test_a_run_that_comes_apart_begins_again_lower_within_the_budget() -> None:
    tuner = Tuner(lr=(1e-4, 1.0), steps=1000, cost=1.0)
    spent, apart = 0, 0
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            steps = np.arange(p.start + 1, p.stop + 1)
            rate = np.array([p.schedule(int(step)) for step in steps])
            spent += len(steps)
            if p.fork == 0:
                drop = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (np.log10(rate) + 1.0)))
                tuner.tell(p, steps.tolist(), {"raw": drop.tolist(), "averaged": drop.tolist()})
            elif p.fork < 4:  # first by values that are not finite, then by worse ones
                apart += 1
                bad = float("nan") if p.fork == 1 else 9.0
                tuner.tell(p, steps.tolist(), {"raw": [bad] * len(steps), "averaged": [2.0] * len(steps)})
            else:
                good = (2.0 - 0.2 * np.log(steps)).tolist()
                tuner.tell(p, steps.tolist(), {"raw": good, "averaged": good})
    assert apart == 3
    assert spent <= 1000
    peaks = [fork.schedule.multipliers.max() for fork in tuner.history.forks[1:]]
    assert all(later < earlier for earlier, later in pairwise(peaks))
    assert tuner.result.fork == 4


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
    found = tune(lambda: training(Quadratic(0.3)), steps=1000, lr=bounds, cost=1)
    forks = found.history.forks
    assert sum(int(f.schedule.change_points[-1]) - f.start for f in forks) <= 1000
    assert found.history.forks[-1].last_values["raw"] < 0.5
    if training is Brittle:
        assert forks[1].failure
        assert forks[2].parent == 1
        assert forks[2].start > 0


def test_a_study_of_one_run_is_continued_with_the_same_decisions(tmp_path: Path) -> None:
    def study(folder: Path) -> "list[float]":
        found = tune(quadratic, steps=400, lr=(1e-4, 10.0), cost=1, study=folder)
        assert found.schedule is not None
        return found.schedule.multipliers.tolist()

    whole = study(tmp_path / "whole")
    lines = (tmp_path / "whole" / "journal.jsonl").read_text().splitlines(keepends=True)
    cut = tmp_path / "cut"
    cut.mkdir()
    (cut / "study.json").write_text((tmp_path / "whole" / "study.json").read_text())
    (cut / "journal.jsonl").write_text("".join(lines[:3]))
    assert study(cut) == whole


def test_the_cost_picks_the_strategy() -> None:
    assert isinstance(horizon(1.0), SingleRun)
    assert isinstance(horizon(1.5), Dynamic)
    with pytest.raises(InputError, match=r"at least 1.*got 0\.5"):
        horizon(0.5)


class Overflowing(QuadraticTraining):
    """Observed every `every` steps; not a number from step `since` on where the rate is or was above 0.05."""

    def __init__(self, every: int, since: int) -> None:
        super().__init__(Quadratic(0.3), every=every)
        self.since = since

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        for step, value in super().advance(schedule, stop):
            apart = step >= self.since and np.max(schedule(np.arange(self.since - 1, step))) > 0.05
            yield step, dict.fromkeys(("raw", "averaged"), float("nan")) if apart else value


@pytest.mark.parametrize(("every", "since"), [(1, 1), (10, 1), (25, 1), (5, 600)])
def test_not_a_number_in_the_range_test_or_late_still_ends_with_a_trained_run(every: int, since: int) -> None:
    found = tune(lambda: Overflowing(every, since), steps=1000, lr=(1e-3, 5.0), cost=1)
    forks = found.history.forks
    assert any(fork.failure and fork.failure.kind == "not finite" for fork in forks[: 1 if since == 1 else None])
    assert found.value is not None
    assert found.value < 0.7 * Quadratic(0.3).loss(np.ones(Quadratic(0.3).dims))
    assert found.weights()
    taken = [
        (f.trace.last_step if f.failure and f.trace else int(f.schedule.change_points[-1])) - f.start for f in forks
    ]
    assert sum(taken) <= 1000


def test_a_range_test_that_is_seen_once_says_to_observe_more_often() -> None:
    tuner = Tuner(lr=(1e-3, 1.0), steps=400, cost=1)
    proposals = tuner.ask()
    assert proposals
    tuner.tell(proposals[0], [40], {"averaged": [1.0]})
    assert tuner.ask() is None
    assert tuner.study.decisions[-1].reasons == (because("range test observed once", steps=40),)
