"""Settings of a fit that are checked."""

import pytest

from paceline import InputError
from paceline.model.settings import FitSettings


def settings(**changes) -> FitSettings:
    values = {"inducing": 150, "task_dims": 2, "lr": None, "anchor_noise": True, "random_effect": True}
    return FitSettings(**{**values, **changes})


def test_valid_settings_are_kept() -> None:
    assert (settings().inducing, settings(task_dims=0).task_dims, settings().summed_rate) == (150, 0, False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inducing": 0}, "inducing must be at least 1, got 0"),
        ({"task_dims": -1}, "number of dimensions of the embedding, got -1"),
    ],
)
def test_wrong_settings_say_what_to_do(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings(**changes)
