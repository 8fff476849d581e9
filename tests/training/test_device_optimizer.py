"""An optimiser that is prepared for recording steps as the plain one does, and writes the same state."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from torch import nn

from paceline.errors import TrainingError
from paceline.training.device_optimizer import DeviceOptimizer
from tests.training.example_trainings import OPTIMIZERS

CPU = torch.device("cpu")


def stepper(optimizer: torch.optim.Optimizer, model: nn.Module) -> Callable[[], None]:
    """A function that does one step, with gradients that change from step to step."""
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        for p in model.parameters():
            p.grad = torch.randn(p.shape, generator=generator)
        optimizer.step()

    return step


def made(kind: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(3, 2)
    for i, p in enumerate(model.parameters()):
        nn.init.normal_(p, generator=torch.Generator().manual_seed(i))
    return model, OPTIMIZERS[kind](model.parameters(), lr=1e-2)


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_state_is_that_of_the_plain_optimiser(kind: str) -> None:
    (plain_model, plain), (model, prepared) = made(kind), made(kind)
    device_optimizer = DeviceOptimizer(prepared, CPU)
    plain_step, step = stepper(plain, plain_model), stepper(prepared, model)
    for _ in range(3):
        plain_step()
        step()
    expected, state = plain.state_dict(), device_optimizer.state_dict()
    assert state["param_groups"] == expected["param_groups"]
    assert state["state"].keys() == expected["state"].keys()
    for index, values in expected["state"].items():
        for name, value in values.items():
            torch.testing.assert_close(state["state"][index][name], value)
    made(kind)[1].load_state_dict(state)  # any runner can continue from it


def test_rates_are_tensors_that_the_step_reads() -> None:
    model, optimizer = made("sgd")
    prepared = DeviceOptimizer(optimizer, CPU)
    before = model.weight.detach().clone()
    prepared.rates[0].fill_(0.0)
    stepper(optimizer, model)()
    assert torch.equal(model.weight, before)


def test_a_state_is_copied_into_the_tensors_of_the_recording() -> None:
    model, optimizer = made("adam")
    prepared, step = DeviceOptimizer(optimizer, CPU), stepper(optimizer, model)
    assert not prepared.has_state
    step()
    prepared.fix_buffers()
    addresses = [tensor.data_ptr() for tensor in prepared.state_tensors()]
    saved = deepcopy(prepared.state_dict())
    step()
    prepared.load_state_dict(saved)
    assert [tensor.data_ptr() for tensor in prepared.state_tensors()] == addresses
    for index, values in saved["state"].items():
        for name, value in values.items():
            assert torch.equal(prepared.state_dict()["state"][index][name], value)


def test_a_new_run_makes_its_state_in_the_tensors_of_the_recording() -> None:
    model, optimizer = made("momentum")
    prepared, step = DeviceOptimizer(optimizer, CPU), stepper(optimizer, model)
    step()
    prepared.fix_buffers()
    addresses = [tensor.data_ptr() for tensor in prepared.state_tensors()]
    prepared.load_state_dict({"state": {}, "param_groups": []})
    assert not prepared.has_state
    step()
    expected = [tensor.clone() for tensor in prepared.state_tensors()]
    prepared.return_to_buffers()
    assert [tensor.data_ptr() for tensor in prepared.state_tensors()] == addresses
    assert all(torch.equal(a, b) for a, b in zip(prepared.state_tensors(), expected, strict=True))


def test_a_clone_has_state_only_if_its_parent_has() -> None:
    (model, optimizer), (_, other) = made("adam"), made("adam")
    first, second = DeviceOptimizer(optimizer, CPU), DeviceOptimizer(other, CPU)
    stepper(optimizer, model)()
    first.fix_buffers()
    first.match_state(second)
    assert not first.has_state
    stepper(optimizer, model)()
    second.match_state(first)
    assert not second.has_state  # it has no buffers yet to copy into
    first.return_to_buffers()
    assert first.has_state


def test_the_state_of_a_parameter_that_joins_late_says_what_to_do() -> None:
    model, optimizer = made("adam")
    prepared = DeviceOptimizer(optimizer, CPU)
    stepper(optimizer, model)()
    prepared.fix_buffers()
    optimizer.param_groups[0]["params"].append(nn.Parameter(torch.zeros(3)))
    with pytest.raises(TrainingError, match=r"shape \(3,\) that got no gradient .*: continue with runner='local'"):
        prepared.load_state_dict({"state": {2: {}}, "param_groups": []})
