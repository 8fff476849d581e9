"""EarlyStopping, paused: no value stops the run, and afterwards it is as a new one."""

from typing import Any

import pytest
import torch
from lightning.pytorch.callbacks import EarlyStopping

from paceline.integrations.lightning_early_stopping import PausedEarlyStopping


def stops(callback: EarlyStopping, *values: float) -> list[bool]:
    return [callback._evaluate_stopping_criteria(torch.tensor(value))[0] for value in values]


@pytest.mark.parametrize("settings", [{}, {"mode": "max"}, {"divergence_threshold": 5.0}, {"patience": 1}])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e9, 0.0])
def test_nothing_stops_while_it_is_paused_and_nothing_is_remembered(settings: dict[str, Any], value: float) -> None:
    callback, new = EarlyStopping("val_loss", **settings), EarlyStopping("val_loss", **settings)
    paused = PausedEarlyStopping([callback])
    for _ in range(5):
        paused.forget()
        assert stops(callback, value) == [False]
    paused.resume()
    assert callback.state_dict() == new.state_dict()
    assert (callback.check_finite, callback.divergence_threshold) == (new.check_finite, new.divergence_threshold)
    values = (3.0, 2.0, 2.5, 2.5, 2.5)
    assert stops(callback, *values) == stops(new, *values)


def test_what_counts_is_kept_if_it_is_resumed_twice() -> None:
    callback = EarlyStopping("val_loss", patience=2)
    paused = PausedEarlyStopping([callback])
    paused.resume()
    assert stops(callback, 1.0, 2.0) == [False, False]
    paused.resume()
    paused.forget()
    assert stops(callback, 2.0) == [True]
