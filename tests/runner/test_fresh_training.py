"""A factory has to build something new at each call."""

import numpy as np
import pytest
import torch
from torch import nn

from paceline.errors import TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner.fresh_training import note_trained, refuse_shared_weights, refuse_trained
from paceline.traces import Schedule
from paceline.training import TorchTraining


def on(model: nn.Module) -> TorchTraining:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    return TorchTraining(
        model, optimizer, batches=[torch.ones(4, 2)], loss=lambda net, batch: net(batch).square().mean()
    )


def test_the_same_training_or_model_is_refused() -> None:
    shared = nn.Linear(2, 2)
    training = on(shared)
    with pytest.raises(TrainingError, match="returned the same training at two calls: build model, optimiser and"):
        refuse_shared_weights(training, [training])
    with pytest.raises(TrainingError, match="returned the same model at two calls: build model, optimiser and"):
        refuse_shared_weights(on(shared), [on(nn.Linear(2, 2)), training])
    refuse_shared_weights(on(nn.Linear(2, 2)), [training])


def test_a_part_that_is_not_trained_may_be_shared() -> None:
    body = nn.Linear(2, 2).requires_grad_(requires_grad=False)
    refuse_shared_weights(on(nn.Sequential(body, nn.Linear(2, 1))), [on(nn.Sequential(body, nn.Linear(2, 1)))])


def test_states_that_are_copies_share_nothing() -> None:
    first, second = QuadraticTraining(Quadratic(dims=5)), QuadraticTraining(Quadratic(dims=5))
    refuse_shared_weights(first, [second])
    assert np.array_equal(first.theta, second.theta)


def test_a_training_that_was_advanced_is_no_new_run() -> None:
    training = on(nn.Linear(2, 2))
    refuse_trained(training)
    list(training.advance(Schedule.constant(0.1, 20), 5))
    with pytest.raises(TrainingError, match="returned a training that has done 5 steps already: build"):
        refuse_trained(training)


def test_a_model_that_a_study_has_left_trained_is_refused_until_weights_are_loaded() -> None:
    model = nn.Linear(2, 2)
    start = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    training = on(model)
    list(training.advance(Schedule.constant(0.1, 20), 5))
    note_trained(training)
    with pytest.raises(TrainingError, match="a model as an earlier study of this process has left it, trained: build"):
        refuse_trained(on(model))
    model.load_state_dict(start)
    refuse_trained(on(model))
