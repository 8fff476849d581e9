"""Values that show a mistake only together: each mistake is told once, and sound studies are left alone."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from paceline.strategy import Dynamic
from paceline.study import Interval, Report
from paceline.traces import Objective
from paceline.training import TorchTraining
from paceline.tuner import Result, tune
from paceline.tuner.doubtful_values import got_worse_everywhere, moves_with_average
from tests.tuner.toy_study import make

WRONG_MODE = "no value became clearly better than the first one, at any rate: if larger values are better, start"
NOT_JUDGED = "raw and averaged weights have had the same value at each observation"


def report(fork: int, raw: list[float], averaged: list[float] | None = None, first: int = 0) -> Report:
    values = {"raw": tuple(raw), **({} if averaged is None else {"averaged": tuple(averaged)})}
    return Report(fork, 0, 10, tuple(range(first, first + len(raw))), values)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize(
    ("values", "expected"),  # from the highest rate to the lowest
    [
        ([[0.1, 0.2, 0.4], [0.1, 0.3, 0.7], [0.1, 0.1, 0.1]], True),  # an accuracy, which one rate is too low for
        ([[0.1, 0.2, 0.4], [0.1, 0.09, 0.7], [0.1, 0.1, 0.1]], True),  # one was better for a moment, by next to nothing
        ([[0.1, 0.2, 0.4], [0.1, 0.04, 0.7], [0.1, 0.1, 0.1]], False),  # one was clearly better for a moment
        ([[2.0, 3.0, 9.0], [2.0, 2.5, 2.5], [2.0, 1.9, 1.8]], False),  # high rates rise at first
        ([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.1]], False),  # nothing has moved
        ([[0.1, 0.2], [0.1, 0.2]], False),  # too few
        ([[0.1, 0.2, 0.4], [0.1, 0.3, np.nan], [0.1, 0.2, 0.2]], True),
        ([[0.1], [0.1]], False),
        ([[0.1, 0.2, 0.2], [0.1, 0.2, 0.3], [0.1, 0.2, 0.4]], False),  # the first batch was easy, and training helps
    ],
)
def test_a_mode_is_doubtful_if_no_value_is_better_than_the_first(mode, values: list, expected: bool) -> None:
    sign = 1 if mode == "min" else -1
    reports = [report(fork, [sign * value for value in column]) for fork, column in enumerate(reversed(values))]
    assert got_worse_everywhere(reports, Objective(mode)) is expected


def test_an_average_is_doubtful_if_it_has_the_values_of_the_raw_weights() -> None:
    falling = [1.0, 0.9, 0.8, 0.7, 0.6]
    assert moves_with_average(report(0, falling, falling)) == 2  # the first two steps say nothing
    assert moves_with_average(report(0, falling, falling, first=2)) == 4
    assert moves_with_average(report(0, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0], first=2)) == 0
    assert moves_with_average(report(0, falling, [1.0, 0.9, 0.85, 0.75, 0.65])) is None
    assert moves_with_average(report(0, falling[:2], [1.0, 0.9])) == 0
    assert moves_with_average(report(0, falling)) == 0


def tell_all(mode: str, value: Callable[[int, float], Any]) -> Result:
    tuner = make(Dynamic.horizon(cost=1.5), mode=mode)
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            tuner.tell(interval, *told(interval, value))
    return tuner.result


def told(interval: Interval, value: Callable[[int, float], Any]) -> tuple[list[int], dict[str, list[float]]]:
    steps = list(range(interval.start + (1 if interval.start else 0), interval.stop + 1))
    rows = [value(step, abs(np.log10(interval.multiplier / 0.01))) for step in steps]
    return steps, {"raw": [raw for raw, _ in rows], "averaged": [averaged for _, averaged in rows]}


@pytest.mark.parametrize("mode", ["min", "max"])
def test_an_accuracy_that_is_minimised_is_told_once(mode: str) -> None:
    def accuracy(step: int, distance: float) -> tuple[float, float]:
        raw = 0.1 + 0.8 * (1 - np.exp(-step / 100 / (1 + distance)))
        return raw, 0.1 + 0.99 * (raw - 0.1)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tell_all(mode, accuracy)
    messages = [str(warning.message) for warning in found]
    assert [message.startswith(WRONG_MODE) for message in messages] == ([True] if mode == "min" else [])
    assert all('mode="max"' in message for message in messages)


def test_an_evaluation_that_ignores_its_model_is_told_and_raw_weights_are_returned() -> None:
    rows = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))

    def training(ignores: bool) -> TorchTraining:
        torch.manual_seed(0)
        model = nn.Linear(4, 1)

        def loss(net: nn.Module, batch: torch.Tensor) -> torch.Tensor:
            return (net(batch) - batch.sum(dim=1, keepdim=True)).square().mean()

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        evaluate = (lambda net: loss(model, rows)) if ignores else (lambda net: loss(net, rows))
        return TorchTraining(model, optimizer, batches=[rows[:32], rows[32:]], loss=loss, evaluate=evaluate, every=1)

    settings: Any = {"steps": 100, "lr": (1e-3, 1e-1), "cost": 1.5, "quiet": True}
    with pytest.warns(UserWarning, match=NOT_JUDGED) as found:
        result = tune(lambda: training(ignores=True), **settings)
    assert len(found) == 1
    assert result.value_of == "raw"
    tune(lambda: training(ignores=False), **settings)
