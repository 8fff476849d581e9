"""The checks pass our own trainings, and each catches the fault that it is there for."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from paceline import InputError, Schedule, TorchTraining
from paceline.problems import Quadratic, QuadraticTraining, digits_training
from paceline.testing import ConformanceError, check_training
from paceline.training import DeviceBatches

X = torch.randn(256, 8, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


def network(**settings: Any) -> TorchTraining:
    """Dropout, momentum and a loader that shuffles."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.1), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    loss_of = torch.nn.CrossEntropyLoss()
    return TorchTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        batches=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), 32, shuffle=True),
        loss=lambda net, batch: loss_of(net(batch[0]), batch[1]),
        **settings,
    )


def on_device() -> TorchTraining:
    model = network().model
    return TorchTraining(
        model,
        torch.optim.AdamW(model.parameters()),
        batches=DeviceBatches(X, Y, size=32),
        loss=lambda net, batch: torch.nn.functional.cross_entropy(net(batch[0]), batch[1]),
    )


TRAININGS: dict[str, Callable[[], Any]] = {
    "quadratic": partial(QuadraticTraining, Quadratic(dims=20)),
    "digits": partial(digits_training, every=10),
    "network": partial(network, evaluate=lambda model: float(torch.nn.functional.cross_entropy(model(X), Y))),
    "network without evaluate": network,
    "batches on the device": on_device,
}


@pytest.mark.parametrize("name", TRAININGS)
def test_our_own_trainings_conform(name: str) -> None:
    check_training(TRAININGS[name], steps=40, rate=0.02)


class Descent:
    """Noisy gradient descent with momentum, as a user may write it; what follows breaks it in one place each."""

    def __init__(self) -> None:
        self.x, self.velocity, self.average = np.ones(5), np.zeros(5), np.ones(5)
        self.step, self.random = 0, np.random.default_rng(0)

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        while self.step < stop:
            self.update(schedule(self.step))
            if self.step % 5 == 0 or self.step == stop:
                yield self.step, self.value()

    def update(self, rate: float) -> None:
        self.velocity = 0.9 * self.velocity + self.x + self.random.normal(size=5)
        self.x = self.x - rate * self.velocity
        self.step += 1
        self.average = self.average + (self.x - self.average) / self.step

    def value(self) -> Any:
        return {"raw": float(self.x @ self.x), "averaged": float(self.average @ self.average)}

    def state_dict(self) -> dict[str, Any]:
        return {
            "x": self.x.tolist(),
            "velocity": self.velocity.tolist(),
            "average": self.average.tolist(),
            "step": self.step,
            "random": self.random.bit_generator.state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.x, self.velocity = np.array(state["x"]), np.array(state["velocity"])
        self.average, self.step = np.array(state["average"]), state["step"]
        self.random.bit_generator.state = state["random"]

    def reseed(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)


def test_a_training_written_by_hand_conforms() -> None:
    check_training(Descent)


class StopsShort(Descent):
    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        yield from super().advance(schedule, stop - 3)


class NoValueAtStop(Descent):
    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        while self.step < stop:
            self.update(schedule(self.step))
            if self.step % 7 == 0:
                yield self.step, self.value()


class NothingYielded(Descent):
    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        for _ in super().advance(schedule, stop):
            pass
        return iter(())


class CountsFromZero(Descent):
    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        for step, value in super().advance(schedule, stop):
            yield step - self.step, value


class OtherWeights(Descent):
    def value(self) -> Any:
        return {"ema": 1.0}


class WeightsThatChange(Descent):
    def value(self) -> Any:
        return super().value() if self.step % 10 == 0 else {"raw": 1.0}


class NotFinite(Descent):
    def value(self) -> Any:
        return float("nan")


class UnseededStart(Descent):
    def __init__(self) -> None:
        super().__init__()
        self.x = np.random.rand(5)  # noqa: NPY002


class GlobalRandomNumbers(Descent):
    def update(self, rate: float) -> None:
        super().update(rate)
        self.x = self.x + 1e-3 * random.random()


class FixedRate(Descent):
    def update(self, rate: float) -> None:
        super().update(0.01)


class RateAhead(Descent):
    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        yield from super().advance(lambda step: schedule(step + 1), stop)  # type: ignore[arg-type]


class RateBehind(Descent):
    def advance(self, schedule: Schedule, stop: int) -> Iterator[Any]:
        yield from super().advance(lambda step: schedule(max(step - 1, 0)), stop)  # type: ignore[arg-type]


class ForgetsOptimiser(Descent):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict({**state, "velocity": [0.0] * 5})


class ForgetsAverage(Descent):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict({**state, "average": state["x"]})


class ForgetsRandomNumbers(Descent):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        before = self.random.bit_generator.state
        super().load_state_dict(state)
        self.random.bit_generator.state = before


class ForgetsStep(Descent):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict({**state, "step": 0})


class KeepsBatches(Descent):
    """Numbers drawn in advance stay with the training: only one that was used by another run shows the fault."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[float] = []

    def update(self, rate: float) -> None:
        if not self.drawn:
            self.drawn = self.random.normal(size=20).tolist()
        self.x = self.x - rate * (self.x + self.drawn.pop())
        self.step += 1


class StateThatDisturbs(Descent):
    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        self.velocity = 0 * self.velocity
        return state


class StateOfObjects(Descent):
    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "generator": self.random}


class StateThatDoesNotLoad(Descent):
    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict({**state, "x": state["X"]})


class ReseedsByTheClock(Descent):
    seeds = iter(range(100))

    def reseed(self, seed: int) -> None:
        super().reseed(seed if seed == 7 else next(self.seeds))


class ReseedStartsAgain(Descent):
    def reseed(self, seed: int) -> None:
        self.__init__()
        super().reseed(seed)


class NoMethods:
    pass


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NoMethods, "must return an object with advance, state_dict and load_state_dict, got NoMethods"),
        (NothingYielded, "advance yielded nothing up to step 40"),
        (StopsShort, "yielded its last value at step 37: train to `stop`"),
        (NoValueAtStop, "yielded its last value at step 35: train to `stop`"),
        (CountsFromZero, "advance yielded step 0 after 0"),
        (OtherWeights, 'yield a number, or a dict with "raw", "averaged" or both'),
        (WeightsThatChange, "of averaged, raw and of raw weights: yield the same ones each time"),
        (NotFinite, "pass a `rate` at which the training is stable"),
        (UnseededStart, "two runs from the factory differ under the same schedule"),
        (GlobalRandomNumbers, "two runs from the factory differ under the same schedule"),
        (FixedRate, r"runs at rates 0.01 and 0.00333 end in the same state"),
        (RateAhead, "follows the rate at step 40, which it does not reach"),
        (RateBehind, "the rate of the last update makes no difference"),
        (StateThatDisturbs, "whose state was saved continues differently.*state_dict must not change the run"),
        (StateOfObjects, "state_dict returned what a checkpoint cannot hold"),
        (StateThatDoesNotLoad, "load_state_dict raised KeyError on what state_dict returned"),
        (ForgetsOptimiser, "differs from one that never stopped: step 25 has"),
        (ForgetsAverage, r"differs from one that never stopped.*\(averaged weights\)"),
        (ForgetsRandomNumbers, "differs from one that never stopped.*random generators"),
        (ForgetsStep, r"from its state at step 20, advance\(schedule, 40\) yielded steps 5 to 40"),
        (KeepsBatches, "used by another run before continues differently.*replace all of it"),
        (ReseedsByTheClock, "two clones of one state with the same seed differ"),
        (ReseedStartsAgain, "does not continue from there: reseed restarts random numbers, and nothing else"),
    ],
)
def test_each_fault_is_found(broken: type, message: str) -> None:
    with pytest.raises(ConformanceError, match=message):
        check_training(broken)


def test_a_conformance_error_fails_a_test_like_an_assertion() -> None:
    with pytest.raises(AssertionError):
        check_training(FixedRate)


def test_small_differences_pass_with_a_tolerance() -> None:
    class Noisy(Descent):
        rounding = iter(np.random.default_rng(0).normal(size=10_000) * 1e-9)

        def update(self, rate: float) -> None:
            super().update(rate)
            self.x = self.x + next(self.rounding)

    with pytest.raises(ConformanceError):
        check_training(Noisy)
    check_training(Noisy, tolerance=1e-4)


def test_the_global_random_state_is_left_as_it_was() -> None:
    before = torch.get_rng_state()
    check_training(Descent)
    assert torch.equal(torch.get_rng_state(), before)


def test_runs_must_be_long_enough_to_pause() -> None:
    with pytest.raises(InputError, match="steps must be at least 4, got 3"):
        check_training(Descent, steps=3)
