import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.problems import digits, train_digits


def test_the_network_learns_and_repeats_itself() -> None:
    schedule = Schedule.of("linear", 1e-2, 100)
    one, two = train_digits(schedule, seed=1), train_digits(schedule, seed=1)
    np.testing.assert_array_equal(one.values, two.values)
    assert one.last_value < 0.5 * one.values[0]
    assert one.last_step == 100
    assert train_digits(schedule, seed=2).values[0] != one.values[0]


def test_a_run_that_diverges_is_a_failed_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    class Diverging:
        def advance(self, schedule, stop):
            yield from [(10, {"raw": 1.0}), (20, {"raw": float("nan")})]

    monkeypatch.setattr(digits, "digits_training", lambda seed, every: Diverging())
    trace = train_digits(Schedule.constant(0.1, 20))
    assert trace.failed
    assert trace.steps.tolist() == [10, 20]


def test_images_are_split_and_every_shift_is_stacked() -> None:
    images, labels, valid_images, valid_labels = digits.load_digits()
    assert (len(images), len(labels), len(valid_images), len(valid_labels)) == (1347, 1347, 450, 450)
    shifts = digits.shifted(images[:2])
    assert shifts.shape == (9, 2, 64)
    assert torch.equal(shifts[4], images[:2])  # the one in the middle is no shift
    grid = images[0].view(8, 8)
    assert torch.equal(shifts[0, 0].view(8, 8)[1:, 1:], grid[:-1, :-1])
