"""The controller of one run: range test, corrections, divergence."""

import json

import numpy as np
import pytest

from paceline import InputError, LearningRateRange
from paceline.strategy import SINGLE_RUN, SingleRunController, WeightAction
from paceline.strategy.single_run.rules import correction_steps, range_test_steps

BOUNDS = LearningRateRange(1e-4, 1.0)


def after_range_test(steps: int = 1000, peak: float = -2.0, bounds: LearningRateRange = BOUNDS) -> SingleRunController:
    """A controller whose range test dropped from 2 to 1 around a rate, and diverged at none."""
    controller = SingleRunController(bounds, steps)
    action = WeightAction.CONTINUE
    while controller.run_start is None:
        loss = 2.0 - 1.0 / (1.0 + np.exp(-8.0 * (np.log10(controller.rate) - peak)))
        action = controller.observe(float(loss))
    assert action is WeightAction.RESTORE
    return controller


def test_the_range_test_sweeps_over_the_bounds_in_a_twentieth_of_the_steps() -> None:
    controller, rates = SingleRunController(BOUNDS, 1000), list[float]()
    while controller.run_start is None:
        rates.append(controller.rate)
        controller.observe(2.0)
    assert len(rates) == range_test_steps(1000) == 50
    np.testing.assert_allclose(rates, np.geomspace(1e-4, 1.0, 50))


def test_a_range_test_that_diverges_ends_early_and_gives_its_steps_to_the_run() -> None:
    controller, action = SingleRunController(BOUNDS, 1000), WeightAction.CONTINUE
    for loss in [2.0] * 10 + [1.0] * 20 + [float("nan")]:
        action = controller.observe(loss)
    assert action is WeightAction.RESTORE
    assert controller.run_start == 31
    assert controller.rate < controller.rate_at(31 + 100)


def test_a_range_test_whose_last_two_losses_are_far_above_the_first_ends_after_a_quarter() -> None:
    controller, high = SingleRunController(BOUNDS, 1000), 100.0
    actions = [controller.observe(loss) for loss in [2.0, *[high] * 12]]
    assert actions.index(WeightAction.RESTORE) == 50 // 4
    assert controller.run_start == 50 // 4 + 1


def test_the_run_follows_the_base_to_the_end_of_the_steps() -> None:
    controller = after_range_test()
    factors = SINGLE_RUN.base.factor(np.array([0.0, 100.0, 400.0, 949.0]), 1000 - 50)
    rates = np.array([controller.rate_at(50 + t) for t in (0, 100, 400, 949, 2000)])
    np.testing.assert_allclose(rates[:4], 10**controller.peak * factors)
    assert rates[4] == rates[3]


@pytest.mark.parametrize(("excess", "direction"), [(5.0, -1), (-1.0, 1)])
def test_the_peak_moves_at_corrections_alone_and_stays_within_the_bounds(excess: float, direction: int) -> None:
    controller, moves = after_range_test(), list[int]()
    start = controller.peak
    while controller.done < 1000:
        before = controller.peak
        averaged = 2.0 - 0.2 * np.log(controller.time + 1)
        needed = averaged if controller.needs_average_loss else None
        action = controller.observe(min(averaged + excess, 2.5), needed)
        if controller.peak != before:
            moves.append(controller.done)
            assert action is WeightAction.SAVE
    assert set(moves) <= {50 + step for step in correction_steps(950)}
    assert direction * (controller.peak - start) > 0.5
    assert -4.0 <= controller.peak <= 0.0


def test_averaged_weights_are_needed_up_to_the_last_correction() -> None:
    controller = after_range_test()
    assert controller.needs_average
    while controller.done < 1000:
        controller.observe(1.0)
        assert controller.needs_average == (controller.done < 50 + correction_steps(950)[-1])
        assert controller.needs_average or not controller.needs_average_loss


def test_a_divergence_lowers_the_peak_and_it_never_goes_above_that_again() -> None:
    controller = after_range_test()
    peak, actions = controller.peak, [controller.observe(10.0) for _ in range(20)]
    assert actions.count(WeightAction.RESTORE) == 5
    assert controller.peak == controller.max_peak < peak - 1.0
    assert controller.observe(float("nan")) is WeightAction.RESTORE
    highest = controller.max_peak
    while controller.done < 1000:
        averaged = 2.0 - 0.1 * np.log(controller.time + 1)
        controller.observe(1.0, averaged if controller.needs_average_loss else None)
    assert controller.peak <= highest


def test_each_divergence_lowers_the_peak_by_twice_as_much_up_to_a_decade() -> None:
    controller = after_range_test(bounds=LearningRateRange(1e-7, 1.0))
    peaks = [controller.peak]
    for _ in range(6):
        controller.observe(float("nan"))
        peaks.append(controller.peak)
    assert -np.diff(peaks) == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_a_peak_that_fails_stays_within_the_bounds_and_ends_after_five_failures_at_the_lowest() -> None:
    controller, actions, peaks = after_range_test(), list[WeightAction](), list[float]()
    while WeightAction.GIVE_UP not in actions:
        actions.append(controller.observe(10.0))  # losses that are finite and too high show it after four
        if actions[-1] is not WeightAction.CONTINUE:
            peaks.append(controller.peak)
    assert min(peaks) == -4.0
    assert peaks.count(-4.0) == 1 + 5
    assert controller.failures_at_lowest == 5


def test_a_run_that_got_worse_from_the_lowest_rate_on_stays_within_the_bounds() -> None:
    controller = SingleRunController(BOUNDS, 1000)
    while controller.run_start is None:
        controller.observe(1.0 + controller.done)
    for _ in range(300):
        controller.observe(1.0, 0.5)
    assert controller.peak == -4.0 <= controller.max_peak


def test_a_state_of_another_version_is_refused_by_its_names() -> None:
    state = after_range_test().to_dict()
    earlier = {name: part for name, part in state.items() if name != "failures_at_lowest"}
    assert SingleRunController.from_dict(earlier) == after_range_test()
    with pytest.raises(InputError, match=r"expected a state of a run with .*, got .*ended.*another version"):
        SingleRunController.from_dict({**earlier, "ended": 3})


def test_a_loss_that_is_never_finite_still_gives_a_rate() -> None:
    controller = SingleRunController(BOUNDS, 100)
    for _ in range(100):
        controller.observe(float("nan"))
    assert np.isfinite(controller.rate)


def test_the_state_goes_through_json() -> None:
    controller = after_range_test()
    for _ in range(300):
        controller.observe(1.0, 0.9)
    copy = SingleRunController.from_dict(json.loads(json.dumps(controller.to_dict())))
    assert copy == controller
    assert copy.observe(1.0, 0.9) == controller.observe(1.0, 0.9)
    assert copy == controller


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least 20, got 10"):
        SingleRunController(BOUNDS, 10)
