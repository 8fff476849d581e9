import numpy as np
import pytest

from paceline import Schedule
from paceline.testing.failing_training import FailingTraining


def steps_until_failure(rate: float) -> tuple[list[int], list[float]]:
    training = FailingTraining(raises_at=0.02, not_finite_at=0.03)
    steps, values = list[int](), list[float]()
    for step, value in training.advance(Schedule.constant(rate, 20), 20):
        steps.append(step)
        values.append(value["raw"])  # type: ignore[index]
    return steps, values


def test_at_other_rates_it_trains() -> None:
    steps, values = steps_until_failure(0.01)
    assert steps == list(range(2, 21, 2))
    assert np.isfinite(values).all()


def test_it_raises_at_its_third_observation() -> None:
    with pytest.raises(ValueError, match="raises on purpose"):
        steps_until_failure(0.02)


def test_it_reports_nan_at_its_third_observation() -> None:
    _, values = steps_until_failure(0.03)
    assert np.isfinite(values[:2]).all()
    assert np.isnan(values[2])
