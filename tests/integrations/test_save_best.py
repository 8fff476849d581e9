"""A loop of a user's own that keeps its best weights with `PaceLR`: they are of the best value, and it can go on."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from paceline import PaceLR
from paceline.strategy.single_run.rules import range_test_steps
from tests.integrations.overfitting import few, held_out_loss, network

STEPS, EVERY = 200, 10
RANGE_TEST = range_test_steps(STEPS)


class Loop:
    """Trains, validates every few steps, and saves the states at the best value."""

    def __init__(self, path: Path, kind: Any, with_optimizer: bool = False) -> None:
        self.path, self.model, self.with_optimizer = path, network(), with_optimizer
        self.optimizer = kind(self.model.parameters(), lr=0.1)
        self.pace = PaceLR(self.optimizer, lr=(1e-4, 1.0), steps=STEPS, model=self.model)
        self.rates, self.values, self.best_step = list[float](), dict[int, float](), 0

    def states(self) -> dict[str, Any]:
        optimizer = {"optimizer": self.optimizer.state_dict()} if self.with_optimizer else {}
        return {"model": self.model.state_dict(), "pace": self.pace.state_dict(), **optimizer}

    def load(self) -> None:
        saved = torch.load(self.path, weights_only=True)
        if self.with_optimizer:
            self.optimizer.load_state_dict(saved["optimizer"])
        self.model.load_state_dict(saved["model"])
        self.pace.load_state_dict(saved["pace"])

    def run(self, stop: int = STEPS) -> "Loop":
        x, y = few()
        for step in range(self.pace.last_epoch, stop):
            rows = torch.randperm(len(y), generator=torch.Generator().manual_seed(step))[:16]
            self.rates.append(self.optimizer.param_groups[0]["lr"])
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows])
            loss.backward()
            self.optimizer.step()
            self.pace.step(loss)
            if (step + 1) % EVERY == 0:
                self.values[step + 1] = held_out_loss(self.model)
                if self.values[step + 1] == min(self.values.values()):
                    self.best_step = step + 1
                    torch.save(self.states(), self.path)
        return self


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "best.pt"


SGD, ADAM = torch.optim.SGD, torch.optim.Adam


def test_what_is_kept_is_of_the_best_value_and_holds_the_peak_and_the_noise(path: Path) -> None:
    loop = Loop(path, ADAM).run()
    best = loop.values[loop.best_step]
    assert RANGE_TEST < loop.best_step < STEPS
    assert best < 0.7 * loop.values[STEPS]
    saved = torch.load(path, weights_only=True)["pace"]
    assert saved["last_epoch"] == loop.best_step
    assert saved["controller"]["run_start"] <= RANGE_TEST
    assert saved["controller"]["peak"] != loop.pace.controller.peak  # corrected later
    assert saved["controller"]["loss_pairs"]
    loop.load()
    assert held_out_loss(loop.model) == best
    assert loop.optimizer.param_groups[0]["lr"] == loop.rates[loop.best_step]


@pytest.mark.parametrize(("kind", "with_optimizer"), [(SGD, False), (ADAM, True)])
def test_training_goes_on_from_it_at_the_same_rates(path: Path, kind: Any, with_optimizer: bool) -> None:
    """The state of the optimiser is the loop's own, as with any scheduler; plain SGD has none."""
    whole = Loop(path, kind, with_optimizer).run()
    assert RANGE_TEST < whole.best_step < STEPS
    again = Loop(path, kind, with_optimizer)
    again.load()
    again.run()
    assert again.rates == whole.rates[whole.best_step :]
    assert again.values == {step: value for step, value in whole.values.items() if step > whole.best_step}


@pytest.mark.parametrize("stop", [5, RANGE_TEST, 75, STEPS])
def test_a_state_of_any_step_is_plain_data(path: Path, stop: int) -> None:
    loop = Loop(path, SGD).run(stop)
    torch.save(loop.pace.state_dict(), path)
    assert torch.load(path, weights_only=True)["last_epoch"] == stop


def test_it_says_which_values_are_of_the_range_test(path: Path) -> None:
    loop = Loop(path, SGD)
    start = held_out_loss(loop.model)
    for step in range(1, STEPS + 1):
        assert loop.pace.in_range_test == (step <= RANGE_TEST)
        loop.run(step)
        if step == RANGE_TEST:
            assert held_out_loss(loop.model) == start
