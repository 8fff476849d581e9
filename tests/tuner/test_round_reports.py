"""Failures that no rate explains: tried again if they may pass, raised if no fork gets on, data otherwise."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.errors import InputError, TrainingError
from paceline.study import Study
from paceline.traces import Schedule
from paceline.tuner import tune
from tests.tuner.toy_study import facts

SETTINGS: Any = {"steps": 100, "lr": (1e-4, 1e-1), "cost": 1.5, "keep": "last"}


class Hooked:
    """A toy run; `hook` is called with the step and the rate before each observation, and may change its value."""

    def __init__(self, hook: Callable[[int, float, float], Any]) -> None:
        self.hook, self.done = hook, 0

    def advance(self, schedule: Schedule, stop: int) -> Iterator[tuple[int, Any]]:
        while self.done < stop:
            self.done += 1
            rate = float(schedule.multipliers[-1])
            value = 1.0 / self.done + 0.1 * abs(np.log10(rate / 0.003))
            changed = self.hook(self.done, rate, value)
            yield changed if isinstance(changed, tuple) else (self.done, changed)

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["done"]


def both(step: int, rate: float, value: float) -> dict[str, float]:
    return {"raw": value, "averaged": 0.99 * value}


class Fault:
    """Raises from a step on at the rates that `at` allows, `times` times, and no more once it is corrected."""

    def __init__(self, error: Exception, step: int, times: int = 10**9, at: Callable[[float], bool] = bool) -> None:
        self.error, self.step, self.left, self.at = error, step, times, at

    def __call__(self, step: int, rate: float, value: float) -> dict[str, float]:
        if step > self.step and self.left and self.at(rate):
            self.left -= 1
            raise self.error
        return both(step, rate, value)

    def training(self) -> Hooked:
        return Hooked(self)


@pytest.mark.parametrize("step", [20, 60, 99])
def test_a_mistake_in_a_later_interval_comes_back_and_the_same_call_goes_on(step: int, tmp_path: Path) -> None:
    fault = Fault(KeyError("label"), step)
    with pytest.raises(KeyError, match="label") as raised:
        tune(fault.training, study=tmp_path / "mistaken", **SETTINGS)
    (note,) = raised.value.__notes__
    assert "raised this after step " in note
    assert "make the same call again; if a lower rate may avoid it, raise a FloatingPointError" in note
    assert Study.open(tmp_path / "mistaken").finished is None
    fault.left = 0
    tune(fault.training, study=tmp_path / "mistaken", **SETTINGS)
    tune(fault.training, study=tmp_path / "whole", **SETTINGS)
    assert facts(tmp_path / "mistaken") == facts(tmp_path / "whole")


def test_a_number_that_overflows_is_no_mistake_and_other_rates_go_on() -> None:
    fault = Fault(FloatingPointError("overflow"), 3, at=lambda rate: rate > 6e-3)
    result = tune(fault.training, **SETTINGS)
    assert result.value is not None
    assert any(fork.failure for fork in result.history.forks)


@pytest.mark.parametrize("error", [MemoryError(), OSError("read timed out"), ConnectionResetError()])
def test_a_transient_exception_is_tried_again_from_the_start_of_the_interval(
    error: Exception, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="paceline")
    tune(Fault(error, 60, times=1).training, study=tmp_path / "again", **SETTINGS)
    assert len([line for line in caplog.messages if "is tried again from step " in line]) == 1
    tune(Fault(error, 60, times=0).training, study=tmp_path / "whole", **SETTINGS)
    assert facts(tmp_path / "again") == facts(tmp_path / "whole")


@pytest.mark.parametrize(("retries", "times", "failed"), [(0, 1, 1), (1, 2, 1), (2, 2, 0)])
def test_a_fork_is_tried_again_so_many_times(retries: int, times: int, failed: int) -> None:
    lowest = Fault(MemoryError(), 1, times, at=lambda rate: rate < 2e-4)
    result = tune(lowest.training, retries=retries, **SETTINGS)
    assert len([fork for fork in result.history.forks if fork.failure]) == failed


def test_a_number_of_retries_is_whole() -> None:
    with pytest.raises(InputError, match="retries must be a whole number, 0 or more, got -1: 1 tries"):
        tune(lambda: Hooked(both), retries=-1, **SETTINGS)


BAD_OBSERVATIONS: dict[str, tuple[Any, str]] = {
    "plain nan": (lambda step, value: (step, float("nan")), "is not finite"),
    "plain number": (lambda step, value: (step, value), "same kinds of values at each step, got raw at step"),
    "no number": (lambda step, value: (step, "low"), "the value a number or a dict.*got 'low'"),
    "none": (lambda step, value: (step, None), "the value a number or a dict.*got None"),
    "other name": (lambda step, value: (step, {"loss": value}), "the value a number or a dict.*got {'loss': "),
    "empty": (lambda step, value: (step, {}), "the value a number or a dict.*got {}"),
    "earlier step": (lambda step, value: (1, both(1, 1, value)), "steps that increase, here from .*got 1"),
    "later step": (lambda step, value: (1000, both(1, 1, value)), "steps that increase, here from .*got 1000"),
    "no step": (lambda step, value: ("x", both(1, 1, value)), "steps that increase, here from .*got 'x'"),
}


@pytest.mark.parametrize("kind", BAD_OBSERVATIONS)
def test_one_bad_observation_fails_its_fork_and_not_the_study(kind: str, tmp_path: Path) -> None:
    bad, _ = BAD_OBSERVATIONS[kind]
    result = tune(
        lambda: Hooked(lambda t, rate, value: bad(t, value) if t == 2 and rate > 0.05 else both(t, rate, value)),
        study=tmp_path,
        **SETTINGS,
    )
    assert result.value is not None
    (failure,) = [report.failure for report in Study.open(tmp_path).reports if report.failure is not None]
    assert failure.kind == ("not finite" if kind == "plain nan" else "raised")
    if kind != "plain nan":
        assert "advance() must yield" in failure.message


@pytest.mark.parametrize("kind", [kind for kind in BAD_OBSERVATIONS if kind != "plain nan"])
def test_bad_observations_of_all_forks_are_the_users_mistake(kind: str) -> None:
    bad, message = BAD_OBSERVATIONS[kind]
    with pytest.raises(TrainingError, match=message) as raised:
        tune(lambda: Hooked(lambda t, rate, value: bad(t, value) if t == 2 else both(t, rate, value)), **SETTINGS)
    assert "in its first interval, at the lowest rate" in raised.value.__notes__[0]
