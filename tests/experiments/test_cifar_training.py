"""Runs of the CIFAR-10 experiment on a few images: the same within a seed, and what they report."""

import pytest
import torch

from experiments._cifar_training import PENALTY, TRACES, Data, error, final_measures, loss, make_training, network
from paceline.traces import Schedule
from tests.experiments.few_images import few_images


@pytest.fixture(scope="module")
def data() -> Data:
    return few_images()


def test_within_a_seed_runs_start_alike_and_only_kernels_are_penalised(data: Data) -> None:
    one, other = (make_training(data, 8, 3, "batches", 50) for _ in range(2))
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)
    kernels, others = one.optimizer.param_groups
    assert kernels["weight_decay"] == 2 * PENALTY
    assert others["weight_decay"] == 0
    assert {p.ndim for p in kernels["params"]} == {4}
    assert sum(p.numel() for group in (kernels, others) for p in group["params"]) == sum(
        p.numel() for p in network(8, 3).parameters()
    )


def test_a_step_of_adam_adds_the_gradient_of_the_penalty(data: Data) -> None:
    training = make_training(data, 8, 0, "batches", 1)
    batch = data.train.part(0, 32)
    kernels = training.optimizer.param_groups[0]["params"]
    plain = torch.autograd.grad(loss(training.model, batch), kernels)
    penalty = PENALTY * sum(p.square().sum() for p in kernels)
    whole = torch.autograd.grad(loss(training.model, batch) + penalty, kernels)
    for p, a, b in zip(kernels, plain, whole, strict=True):
        torch.testing.assert_close(b - a, 2 * PENALTY * p.detach(), atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("trace", TRACES)
def test_a_run_reports_its_trace(data: Data, trace: str) -> None:
    training = make_training(data, 8, 0, trace, 2)
    observations = list(training.advance(Schedule.constant(1e-3, 4), 4))
    assert [step for step, _ in observations] == [0, 2, 4]
    model = training.model.eval()
    with torch.no_grad():
        expected = {
            "training loss": float(loss(model, data.train_sample)),
            "validation loss": float(loss(model, data.valid)),
            "validation error": float(error(model, data.valid)),
        }
    if trace != "batches":
        assert observations[-1][1]["raw"] == pytest.approx(expected[trace], rel=1e-4)


def test_the_final_measures_are_of_raw_and_averaged_weights(data: Data) -> None:
    training = make_training(data, 8, 0, "validation error", 4)
    list(training.advance(Schedule.constant(3e-3, 8), 8))
    measures = final_measures(training.state_dict(), data, 8)
    model = training.model.eval()
    with torch.no_grad():
        assert measures["raw"]["test loss"] == pytest.approx(float(loss(model, data.test)), rel=1e-4)
        assert measures["raw"]["test accuracy"] == pytest.approx(1 - float(error(model, data.test)))
    assert measures["averaged"]["test loss"] != measures["raw"]["test loss"]


def test_an_error_of_none_has_a_logarithm(data: Data) -> None:
    scores = torch.nn.functional.one_hot(data.valid.y, 10).float()
    assert float(error(lambda x: scores, data.valid)) == 0.5 / len(data.valid.y)  # type: ignore[arg-type]
