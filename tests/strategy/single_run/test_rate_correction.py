"""The correction of a rate by the noise and the progress of a run."""

import numpy as np
import pytest

from paceline.strategy.single_run import rate_correction
from paceline.strategy.single_run.rules import peak_change
from paceline.study import because

STEPS = np.arange(0, 401, 10)
LOSSES = 2.0 - 0.3 * np.log(np.maximum(STEPS, 1))  # gains 0.3 with each factor e of time
AVERAGED = float(LOSSES[-1])


def decades(noise: float, least: float = 0.0) -> float:
    last = {"averaged": AVERAGED, "raw": AVERAGED + noise}
    return rate_correction(STEPS, LOSSES, last, 400, 1000, least=least).decades


def test_it_is_the_change_of_the_peak_for_the_noise_and_the_progress_seen() -> None:
    last = {"averaged": AVERAGED, "raw": AVERAGED + 0.6}
    correction = rate_correction(STEPS, LOSSES, last, 400, 1000)
    assert correction.reason["progress"] == pytest.approx(0.3)
    assert correction.reason["noise"] == pytest.approx(0.6)
    assert correction.decades == pytest.approx(peak_change(0.6, 0.3, 0.4))


def test_much_noise_lowers_a_rate_and_little_raises_it() -> None:
    assert decades(3.0) < 0 < decades(0.01)


def test_a_change_below_the_least_is_not_made() -> None:
    small = decades(0.5)
    assert small != 0
    assert decades(0.5, least=abs(small)) == small
    assert decades(0.5, least=abs(small) + 1e-6) == 0.0


@pytest.mark.parametrize(
    ("steps", "last"),
    [(STEPS, {"raw": 1.0}), (STEPS[:2], {"raw": 1.0, "averaged": 0.9}), (STEPS[:0], {"raw": 1.0, "averaged": 0.9})],
)
def test_without_an_average_or_with_few_losses_nothing_changes(steps: np.ndarray, last: dict[str, float]) -> None:
    correction = rate_correction(steps, LOSSES[: len(steps)], last, 400, 1000)
    assert (correction.decades, correction.reason) == (0.0, because("too few observations"))
