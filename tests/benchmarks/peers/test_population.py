"""Population based training: what a clone's rate is, and which settings are refused."""

import numpy as np
import pytest

from benchmarks.peers import PopulationBasedBandits, PopulationBasedTraining
from paceline.errors import InputError
from paceline.tuner import Tuner
from tests.tuner.toy_study import loss


def test_pbt_clones_the_best_fifth_at_a_perturbed_rate() -> None:
    tuner = Tuner(lr=(1e-4, 1e-1), steps=400, strategy=PopulationBasedTraining(forks=5, intervals=10))
    for p in tuner.ask() or []:
        tuner.tell(p, *loss(p))
    reported = [fork for fork in tuner.history.forks if fork.trace is not None]
    ranked = sorted(reported, key=lambda fork: fork.trace.values[-1])  # type: ignore[union-attr]
    assert {fork.id for fork in tuner.history.alive} == {fork.id for fork in ranked[:4]} | {5}
    clone = tuner.history.fork(5)
    assert clone.parent == ranked[0].id
    factor = clone.multiplier / ranked[0].multiplier
    assert any(np.isclose(factor, expected) for expected in (0.8, 1.25))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PopulationBasedBandits(forks=0), "at least one fork"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=9, strategy=PopulationBasedTraining()), "9 steps are too few"),
    ],
)
def test_bad_settings_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
