"""A recorded training observes and keeps what the plain one does. Here on the host; on a GPU, see tests/runner."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from paceline import Schedule
from paceline.errors import TrainingError
from paceline.training import (
    DeviceBatches,
    NotRecordableError,
    RecordedTraining,
    TorchTraining,
    load_checkpoint,
    save_checkpoint,
)
from tests.training.example_trainings import CountingOptimizer, device_digits
from tests.training.host_stream import DeviceOnlyReplay, HostWorkStream

CPU = torch.device("cpu")
SCHEDULE = Schedule.of("linear", 1e-2, 60)


def recorded(**settings) -> RecordedTraining:
    return RecordedTraining(device_digits(**settings), HostWorkStream(CPU))


def advance(fork: RecordedTraining, stop: int) -> list[tuple[int, dict[str, float]]]:
    """Train to `stop`, observing as `TorchTraining.advance` does."""
    observed = []
    fork.begin(SCHEDULE)
    if fork.training.steps_done == 0 and fork.training.evaluate is not None:
        fork.observe()
        observed += fork.observations()
    while fork.training.steps_done < stop:
        target = fork.training.next_observation(SCHEDULE, stop)
        while fork.training.steps_done < target:
            fork.step()
        fork.observe()
        observed += fork.observations()
    return observed


def assert_equal(some: list, others: list) -> None:
    assert [(step, values.keys()) for step, values in some] == [(step, values.keys()) for step, values in others]
    for (_, values), (_, expected) in zip(some, others, strict=True):
        for name, value in values.items():
            assert value == pytest.approx(expected[name], rel=2e-3)


@pytest.mark.parametrize(
    ("optimizer", "evaluate"),
    [("adam", "tensor"), ("adamw", "number"), ("momentum", "none"), ("sgd", "none"), ("rmsprop", "tensor")],
)
def test_it_observes_what_the_plain_training_does(optimizer: str, evaluate: str) -> None:
    plain, fork = device_digits(optimizer, evaluate=evaluate), recorded(optimizer=optimizer, evaluate=evaluate)
    assert_equal(advance(fork, 33), list(plain.advance(SCHEDULE, 33)))
    assert_equal(advance(fork, 60), list(plain.advance(SCHEDULE, 60)))
    for a, b in zip(fork.training.model.parameters(), plain.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


def test_an_evaluation_may_seed_random_numbers() -> None:
    forks = recorded(), recorded()
    evaluate = forks[1].training.evaluate

    def evaluate_on_drawn_batches(model: nn.Module) -> torch.Tensor:
        torch.manual_seed(1)
        return evaluate(model)

    forks[1].training.evaluate = evaluate_on_drawn_batches
    before = torch.get_rng_state()
    assert_equal(advance(forks[1], 33), advance(forks[0], 33))
    assert torch.equal(torch.get_rng_state(), before)


def test_its_checkpoints_and_those_of_the_plain_training_are_interchangeable(tmp_path: Path) -> None:
    fork, plain = recorded(), device_digits()
    expected = advance(fork, 60)
    list(plain.advance(SCHEDULE, 33))
    save_checkpoint(plain.state_dict(), tmp_path / "plain.pt")
    fork.load_state_dict(load_checkpoint(tmp_path / "plain.pt"))
    assert_equal(advance(fork, 45), [(40, expected[4][1]), (45, plain_values(plain, 45))])
    save_checkpoint(fork.state_dict(), tmp_path / "recorded.pt")
    again = device_digits()
    again.load_state_dict(load_checkpoint(tmp_path / "recorded.pt"))
    assert_equal(list(again.advance(SCHEDULE, 60))[-1:], expected[-1:])


def plain_values(training: TorchTraining, stop: int) -> dict[str, float]:
    return list(training.advance(SCHEDULE, stop))[-1][1]


def test_a_run_that_begins_anew_has_no_optimiser_state_of_the_last_one() -> None:
    fork = recorded(optimizer="momentum")
    start = device_digits("momentum").state_dict()
    first = advance(fork, 25)
    fork.load_state_dict(start)
    assert_equal(advance(fork, 25), first)


def test_a_clone_continues_as_its_parent_until_it_is_reseeded() -> None:
    parent, clone, other = recorded(), recorded(), recorded()
    advance(parent, 25)
    for fork in (clone, other):
        fork.clone(parent)
    other.reseed(5)
    expected = advance(parent, 60)
    assert_equal(advance(clone, 60), expected)
    assert advance(other, 60)[-1] != expected[-1]


def test_an_optimiser_that_has_state_already_keeps_it() -> None:
    def later() -> TorchTraining:
        earlier, training = device_digits(), device_digits()
        list(earlier.advance(SCHEDULE, 30))
        training.model.load_state_dict(earlier.model.state_dict())
        training.optimizer.load_state_dict(earlier.optimizer.state_dict())
        return training

    assert_equal(advance(RecordedTraining(later(), HostWorkStream(CPU)), 30), list(later().advance(SCHEDULE, 30)))


class Rebinding(nn.Module):
    """Replaces its statistics by new tensors; a recording would go on reading the old ones."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(24))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x - self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x


def test_a_module_that_replaces_its_tensors_is_refused() -> None:
    training = device_digits()
    training.model[3] = Rebinding()
    training.average = type(training.average)(training.model)
    with pytest.raises(NotRecordableError, match="replaces its tensors by new ones: change them in place"):
        RecordedTraining(training, HostWorkStream(CPU))


def test_an_optimiser_that_counts_on_the_host_is_refused() -> None:
    training = device_digits()
    training.optimizer, training.rate_ratios = CountingOptimizer(training.model.parameters()), np.ones(1)
    with pytest.raises(NotRecordableError, match="CountingOptimizer, the model or `step` counts or decides on the hos"):
        RecordedTraining(training, DeviceOnlyReplay(CPU))


def test_a_step_that_diverges_at_once_is_refused() -> None:
    training = device_digits()
    loss = training.loss
    training.loss = lambda model, batch: loss(model, batch) * float("inf")
    with pytest.raises(NotRecordableError, match="weights are not finite after a few steps at rates up to"):
        RecordedTraining(training, HostWorkStream(CPU))


class InexactReplay(HostWorkStream):
    """Replays that end a millionth away from the step, as sums in another order do."""

    def record(self, work):
        def replay() -> None:
            work()
            with torch.no_grad():
                InexactReplay.weight += 1e-6

        return replay


def test_differences_of_rounding_may_grow_from_step_to_step() -> None:
    """Gradients change sign within a few millionths: after three steps in a row the weights could be anywhere."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 0.5)  # here a step moves it by much more than a millionth
    InexactReplay.weight = model.weight
    training = TorchTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-2),
        batches=DeviceBatches(torch.zeros(8, 1), size=4),
        loss=lambda net, batch: -torch.cos(1e6 * net.weight).sum() / 1e6,
    )
    RecordedTraining(training, InexactReplay(CPU))


def test_odd_models_and_optimisers_are_recorded() -> None:
    training = device_digits()
    training.optimizer.add_param_group({"params": [], "lr": 1e-3})
    training.rate_ratios = np.ones(3)
    training.model[0].register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    training.model[4].bias.requires_grad_(False)
    training.average = type(training.average)(training.model)
    observed = advance(RecordedTraining(training, HostWorkStream(CPU)), 30)
    assert np.isfinite([list(values.values()) for _, values in observed]).all()


def test_an_optimiser_state_that_comes_late_says_what_to_do() -> None:
    fork = recorded()
    state = device_digits().state_dict()
    state["optimizer"]["state"] = {99: {}}
    fork.training.optimizer.param_groups[0]["params"] += [nn.Parameter(torch.zeros(3))] * 99
    with pytest.raises(TrainingError, match=r"shape \(3,\) that got no gradient when the step was recorded"):
        fork.load_state_dict(state)
