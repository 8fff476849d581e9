"""Rates inside trials: written after checkpoints, and stairs."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ray.tune")
from ray import tune

from paceline.errors import InputError, TrainingError
from paceline.integrations.ray_tune import rate, set_rate
from paceline.integrations.ray_tune.trial_rates import staircase, with_rate_kept
from paceline.traces import Schedule
from tests.integrations.ray_tune.example_trainables import Descent


def test_a_checkpoint_brings_the_old_rate_back_unless_it_is_kept_from_it(tmp_path: Path) -> None:
    """What ray's own schedulers run is the class itself."""

    def make(kind: type[tune.Trainable], lr: float) -> Any:
        trial: Any = kind.__new__(kind)  # without the folder in people's homes that Ray makes
        trial.config, trial._iteration = {"lr": lr}, 0
        trial.setup(trial.config)
        return trial

    make(Descent, 0.5).save_checkpoint(str(tmp_path))
    plain, kept = make(Descent, 0.1), make(with_rate_kept(Descent, "lr", needs_optimizer=True), 0.1)
    for trial in (plain, kept):
        trial.load_checkpoint(str(tmp_path))
    assert [trial.step()["lr"] for trial in (plain, kept)] == pytest.approx([0.5, 0.1], rel=1e-4)
    kept.optimizer = None
    with pytest.raises(TrainingError, match="has no torch optimiser"):
        kept.step()


def test_a_rate_is_written_after_a_checkpoint() -> None:
    groups = [{"params": [torch.nn.Parameter(torch.ones(1))], "lr": lr} for lr in (0.5, 0.05)]
    optimizer = torch.optim.SGD(groups)
    set_rate(optimizer, 0.1)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.1, 0.01])
    assert rate({"paceline_schedule": Schedule.of("linear", 0.4, steps=10).to_json()}, 5) == pytest.approx(0.2)
    with pytest.raises(InputError, match="pass stairs=0 to PacelineScheduler"):
        rate({"lr": 0.1}, 5)


def test_stairs_go_down_to_nearly_nothing() -> None:
    schedule = Schedule([2.0], [0, 100], base=staircase(100, 7))
    rates = [schedule(step) for step in range(100)]
    assert sorted({round(rate, 6) for rate in rates}, reverse=True) == pytest.approx(
        [2.0, *(2.0 * (k + 0.5) / 7 for k in reversed(range(7)))], abs=1e-6
    )
    assert math.isclose(rates[29], 2.0)
    assert rates[30] < 2.0


def test_a_function_and_a_class_with_its_rate_kept_stay_as_they_are() -> None:
    kept = with_rate_kept(Descent, "lr", needs_optimizer=True)
    assert with_rate_kept(kept, "lr", needs_optimizer=True) is kept
    assert (kept.__name__, kept.__doc__) == (Descent.__name__, Descent.__doc__)


def test_optimisers_in_lists_and_dicts_get_the_rate_too() -> None:
    class Two(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            weights = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
            first, second = (torch.optim.SGD([weight], lr=0.5) for weight in weights)
            self.first, self.others = [first], {"second": second}

        def step(self) -> dict[str, float]:
            return {name: o.param_groups[0]["lr"] for name, o in {"first": self.first[0], **self.others}.items()}

    kept = with_rate_kept(Two, "lr", needs_optimizer=True)
    trial: Any = kept.__new__(kept)
    trial.config, trial._iteration = {"lr": 0.1}, 0
    trial.setup(trial.config)
    assert trial.step() == {"first": 0.1, "second": 0.1}
