"""Loops that use PaceLR wrongly end with an error; loops as people write them do not."""

import copy
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import StepLR

from paceline import PaceLR
from paceline.errors import TrainingError

STEPS = 60
pytestmark = pytest.mark.filterwarnings("ignore:training diverged:UserWarning")  # the loops are short and noisy


class Loop:
    """A small model, with one update as a method."""

    def __init__(self, optimizer: Any = SGD, **settings: Any) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(4, 1)
        self.optimizer: Optimizer = optimizer(self.model.parameters(), lr=0.1, **settings)
        self.pace = PaceLR(self.optimizer, lr=(1e-4, 0.1), steps=STEPS)

    def backward(self) -> torch.Tensor:
        loss = (self.model(torch.randn(8, 4)) - 1.0).square().mean()
        loss.backward()
        return loss.detach()

    def update(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        loss = self.backward()
        self.optimizer.step()
        return loss


# mistakes


def other_scheduler(loop: Loop) -> None:
    scheduler = StepLR(loop.optimizer, step_size=5, gamma=0.5)
    for _ in range(STEPS):
        loop.pace.step(loop.update())
        scheduler.step()


def rates_of_ones_own(loop: Loop) -> None:
    for _ in range(STEPS):
        for group in loop.optimizer.param_groups:
            group["lr"] = 0.003
        loop.pace.step(loop.update())


def state_loaded_after(loop: Loop) -> None:
    loop.optimizer.load_state_dict(SGD(loop.model.parameters(), lr=0.003).state_dict())
    loop.pace.step(loop.update())


def group_added_after(loop: Loop) -> None:
    loop.optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    loop.pace.step(loop.update())


def forgotten(loop: Loop) -> None:
    for _ in range(STEPS):
        loop.update()


def once_an_epoch(loop: Loop) -> None:
    loop.pace.step(loop.update())
    for _ in range(STEPS):
        for _ in range(20):
            loss = loop.update()
        loop.pace.step(loss)


def twice_an_update(loop: Loop) -> None:
    for _ in range(STEPS):
        loss = loop.update()
        loop.pace.step(loss)
        loop.pace.step(loss)


def every_micro_batch(loop: Loop) -> None:
    for i in range(STEPS):
        loss = loop.backward()
        if i % 4 == 3:
            loop.optimizer.step()
            loop.optimizer.zero_grad()
        loop.pace.step(loss)


def never_an_update(loop: Loop) -> None:
    for _ in range(STEPS):
        loop.pace.step(loop.backward())


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (other_scheduler, r"rate at step 6 is 0.001155, but PaceLR had set 0.00231: .* Remove the other scheduler"),
        (rates_of_ones_own, r"rate at step 1 is 0.003, but PaceLR had set 0.0001: .* the line that sets group\['lr'\]"),
        (state_loaded_after, r"rate at step 1 is 0.003, .* Load a state of the optimiser before PaceLR is constructed"),
        (group_added_after, r"has 2 parameter groups at step 1, and had 1 .* add all groups before that"),
        (forgotten, r"called 11 times in a row without pace.step\(loss\): call that after each optimizer.step"),
        (once_an_epoch, r"called 11 times in a row without pace.step\(loss\): .* not once an epoch"),
        (twice_an_update, r"5 of 10 calls of pace.step\(loss\) came without an optimizer.step\(\) before them"),
        (every_micro_batch, r"13 of 17 calls of pace.step\(loss\) came without .* after the last of them only"),
        (never_an_update, r"25 of 25 calls of pace.step\(loss\) came without an optimizer.step\(\)"),
    ],
)
def test_a_loop_that_is_wrong_ends_with_an_error(loop: Callable[[Loop], None], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        loop(Loop())


# loops that are as they should be


def overflow(gradient: torch.Tensor) -> torch.Tensor:
    """What a gradient of 16 bits would be."""
    return torch.where(gradient.abs() > 65504, torch.inf, gradient)


def scaled_gradients(loop: Loop) -> Iterator[torch.Tensor]:
    """Mixed precision: all updates are skipped at first, and every other one later."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30, growth_interval=1)
    for parameter in loop.model.parameters():
        parameter.register_hook(overflow)
    for _ in range(STEPS):
        loop.optimizer.zero_grad()
        loss = (loop.model(torch.randn(8, 4)) - 1.0).square().mean()
        scaler.scale(loss).backward()
        scaler.step(loop.optimizer)
        scaler.update()
        yield loss


def scaled_and_zeroed(loop: Loop) -> Iterator[torch.Tensor]:
    """Gradients are gone when PaceLR is called, so only the frequency of skipped updates tells."""
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
    for parameter in loop.model.parameters():
        parameter.register_hook(overflow)
    for _ in range(STEPS):
        loss = (loop.model(torch.randn(8, 4)) - 1.0).square().mean()
        scaler.scale(loss).backward()
        scaler.step(loop.optimizer)
        scaler.update()
        loop.optimizer.zero_grad()
        yield loss


def accumulated(loop: Loop) -> Iterator[torch.Tensor]:
    for _ in range(STEPS):
        loop.optimizer.zero_grad()
        losses = [loop.backward() for _ in range(4)]
        loop.optimizer.step()
        yield torch.stack(losses).mean()


def several_steps_of_a_critic(loop: Loop) -> Iterator[torch.Tensor]:
    for _ in range(STEPS):
        losses = [loop.update() for _ in range(5)]
        yield losses[-1]


def some_updates_left_out(loop: Loop) -> Iterator[torch.Tensor]:
    for i in range(STEPS):
        loop.optimizer.zero_grad()
        loss = loop.backward()
        if i % 3:
            loop.optimizer.step()
        yield loss


def weights_moved_by_hand(loop: Loop) -> Iterator[torch.Tensor]:
    """As by SAM's two steps, or a recorded graph: the optimiser's step is never called."""
    for _ in range(STEPS):
        loop.model.zero_grad()
        loss = loop.backward()
        with torch.no_grad():
            for parameter in loop.model.parameters():
                parameter -= loop.optimizer.param_groups[0]["lr"] * parameter.grad
        yield loss


@pytest.mark.parametrize("optimizer", [SGD, Adam])
@pytest.mark.parametrize(
    "loop",
    [
        scaled_gradients,
        scaled_and_zeroed,
        accumulated,
        several_steps_of_a_critic,
        some_updates_left_out,
        weights_moved_by_hand,
    ],
)
def test_a_loop_that_is_right_goes_to_its_end(loop: Callable[[Loop], Iterator[torch.Tensor]], optimizer: Any) -> None:
    run = Loop(optimizer)
    for loss in loop(run):
        run.pace.step(loss)
    assert run.pace.last_epoch == STEPS


def test_a_rate_that_is_a_tensor_is_compared_as_one() -> None:
    loop = Loop(Adam)
    loop.optimizer.param_groups[0]["lr"] = torch.tensor(0.1)
    loop.pace = PaceLR(loop.optimizer, lr=(1e-4, 0.1), steps=STEPS)
    for _ in range(STEPS):
        loop.pace.step(loop.update())


def test_the_optimiser_is_free_when_a_run_is_over() -> None:
    loop = Loop()
    for _ in range(STEPS):
        loop.pace.step(loop.update())
    forgotten(loop)
    short = Loop()
    short.pace.step(short.update())
    short.pace.close()
    forgotten(short)


def test_the_last_of_several_counts_and_one_that_is_gone_does_not() -> None:
    loop = Loop()
    earlier, loop.pace = loop.pace, PaceLR(loop.optimizer, lr=(1e-4, 0.1), steps=STEPS)
    for _ in range(STEPS):
        loop.pace.step(loop.update())
    assert earlier.last_epoch == 0
    other = Loop()
    other.pace.step(other.update())
    del other.pace
    gc.collect()
    forgotten(other)


def test_a_copy_counts_its_own_optimiser() -> None:
    loop = Loop()
    for _ in range(20):
        loop.pace.step(loop.update())
    twin = copy.deepcopy(loop)
    for each in (twin, loop):
        for _ in range(40):
            each.pace.step(each.update())
    with pytest.raises(TrainingError, match="called 11 times"):
        forgotten(copy.deepcopy(Loop()))


class Wrapper(Optimizer):
    """An optimiser that holds another and never calls the constructor of torch's, like accelerate's."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer

    @property
    def param_groups(self) -> Any:
        return self.optimizer.param_groups

    @property
    def state(self) -> Any:
        return self.optimizer.state

    def state_dict(self) -> Any:
        return self.optimizer.state_dict()

    def load_state_dict(self, state: Any) -> None:
        self.optimizer.load_state_dict(state)

    def step(self, closure: Any = None) -> Any:
        return self.optimizer.step(closure)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)


def test_an_optimiser_around_another_counts_by_the_one_inside() -> None:
    loop = Loop()
    loop.optimizer = Wrapper(loop.optimizer)
    loop.pace = PaceLR(loop.optimizer, lr=(1e-4, 0.1), steps=STEPS)
    for _ in range(STEPS // 2):
        loop.pace.step(loop.update())
    with pytest.raises(TrainingError, match="called 11 times"):
        forgotten(loop)
