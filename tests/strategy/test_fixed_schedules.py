"""Fixed schedules: which ones are run, and that the best one wins."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.shapes import Constant, Cosine, Linear
from paceline.strategy import FixedSchedules, Goal
from paceline.traces import LearningRateRange, Objective
from paceline.tuner import tune

GOAL = Goal(LearningRateRange(1e-4, 1.0), 400, Objective())


def test_a_grid_spreads_its_peaks_over_the_bounds_and_takes_shapes_in_turn() -> None:
    schedules = FixedSchedules((Linear(), Cosine()), runs=4).schedules(GOAL)
    assert [s.multipliers[0] for s in schedules] == pytest.approx(10.0 ** np.array([-3.5, -2.5, -1.5, -0.5]))
    assert [s.base.to_json()["name"] for s in schedules] == ["linear", "cosine", "linear", "cosine"]


def test_a_random_search_repeats_with_its_seed_and_stays_within_the_bounds() -> None:
    search = FixedSchedules((Linear(), Cosine()), runs=20, search="random")
    peaks = [s.multipliers[0] for s in search.schedules(GOAL)]
    assert peaks == [s.multipliers[0] for s in search.schedules(GOAL)]
    assert len(set(peaks)) == 20
    assert 1e-4 <= min(peaks) < max(peaks) <= 1.0


def test_peaks_of_ones_own_are_run_as_they_are() -> None:
    schedules = FixedSchedules((Constant(),), runs=2, peaks=(0.01, 0.3)).schedules(GOAL)
    assert [s.multipliers[0] for s in schedules] == pytest.approx([0.01, 0.3])


def test_the_run_that_ends_best_wins() -> None:
    result = tune(
        lambda: QuadraticTraining(Quadratic()),
        steps=200,
        lr=(1e-3, 1.5),
        strategy=FixedSchedules((Constant(),), runs=5, intervals=2),
    )
    ends = [fork.recent() for fork in result.history.forks]
    assert result.fork == int(np.argmin(ends))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bases": ()}, "at least one run of at least one base, got 1 of 0"),
        ({"bases": (Constant(),), "runs": 0}, "at least one run of at least one base, got 0 of 1"),
        ({"bases": (Constant(),), "intervals": 0}, "intervals must be at least 1, got 0"),
    ],
)
def test_bad_settings_say_what_to_do(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FixedSchedules(**settings)
