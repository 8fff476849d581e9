import numpy as np
import pytest

from paceline import InputError
from paceline.model import FailureModel
from paceline.model.failure import failed_intervals
from tests.model.test_likelihood import segment


def grid(n: int) -> np.ndarray:
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    return np.stack([x.ravel(), y.ravel()], -1)


def test_learns_a_border_and_is_unsure_across_it() -> None:
    inputs = grid(7)
    model = FailureModel.fit(inputs, inputs[:, 1] > 0.6)
    p = model.probability(np.array([[0.5, 0.05], [0.5, 0.6], [0.5, 0.95]]))
    assert p[0] < 0.1 < p[1] < 0.9 < p[2]


def test_without_a_failure_everything_is_likely_to_work_and_the_reverse() -> None:
    inputs = grid(4)
    assert FailureModel.fit(inputs, np.zeros(16, bool)).probability(inputs).max() < 0.2
    assert FailureModel.fit(inputs, np.ones(16, bool)).probability(inputs).min() > 0.5


def test_more_labels_start_warm() -> None:
    inputs = grid(5)
    failed = inputs[:, 1] > 0.5
    early = FailureModel.fit(inputs[:15], failed[:15])
    late = FailureModel.fit(inputs, failed, start=early)
    cold = FailureModel.fit(inputs, failed)
    np.testing.assert_allclose(late.probability(inputs), cold.probability(inputs), atol=0.05)


def test_what_counts_as_failed() -> None:
    t = np.array([0.5, 1.0])
    fine, worse = segment(t, np.array([0.1, 0.2])), segment(t, np.array([0.1, -0.4]))
    assert failed_intervals([fine, worse], 0.1).tolist() == [False, True]
    assert failed_intervals([fine, worse], 0.2).tolist() == [False, False]


@pytest.mark.parametrize(
    ("inputs", "failed", "message"),
    [
        (np.zeros((0, 2)), np.zeros(0, bool), "at least one row, got 0 rows"),
        (np.zeros((3, 2)), np.zeros(2, bool), "3 rows and 2 labels"),
        (np.full((2, 2), np.nan), np.zeros(2, bool), "inputs must be finite"),
    ],
)
def test_bad_labels_say_what_to_do(inputs: np.ndarray, failed: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FailureModel.fit(inputs, failed)
