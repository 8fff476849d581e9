"""The average of the weights covers the last share of the steps."""

from contextlib import suppress
from copy import deepcopy
from threading import Lock

import numpy as np
import pytest
import torch
from torch import nn

from paceline.errors import InputError
from paceline.training import AVERAGE_SHARE, WeightAverage, newest_weight


def test_an_update_moves_the_average_by_the_newest_weight() -> None:
    model = nn.Linear(3, 2)
    average = WeightAverage(model, share=0.5)
    expected = model.weight.detach().clone()
    for count in range(6):
        nn.init.normal_(model.weight)
        average.update(model)
        expected += newest_weight(count, 0.5) * (model.weight.detach() - expected)
        torch.testing.assert_close(average.module.weight, expected)
    assert int(average.n_averaged) == 6


def test_the_average_covers_its_share_of_the_steps() -> None:
    """Of weights that grow evenly, the average lags behind by about `share` of the run."""
    model = nn.Linear(1, 1, bias=False)
    average = WeightAverage(model)
    for step in range(2000):
        nn.init.constant_(model.weight, step)
        average.update(model)
    assert average.module.weight.item() == pytest.approx(2000 * (1 - AVERAGE_SHARE / (1 + AVERAGE_SHARE)), rel=0.01)


def test_integers_and_values_that_are_not_finite_are_copied() -> None:
    model = nn.BatchNorm1d(2)
    model.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    average = WeightAverage(model)
    nn.init.constant_(model.weight, 3.0)
    model.num_batches_tracked += 7
    average.update(model)
    average.update(model)
    assert average.module.mask.tolist() == [0.0, -torch.inf]
    assert int(average.module.num_batches_tracked) == 7
    assert np.isfinite(average.module.weight.detach().numpy()).all()


def test_a_model_has_its_own_weights_again_after_the_swap() -> None:
    model = nn.Linear(2, 2)
    average = WeightAverage(model)
    nn.init.constant_(model.weight, 5.0)
    own = deepcopy(model.state_dict())
    with suppress(KeyError), average.swap_into(model):
        assert torch.equal(model.weight, average.module.weight)
        raise KeyError  # an evaluation that fails must not leave the averaged weights behind
    assert all(torch.equal(own[name], tensor) for name, tensor in model.state_dict().items())


def test_an_average_goes_on_from_its_state() -> None:
    model = nn.Linear(2, 2)
    first = WeightAverage(model)
    first.update(model)
    second = WeightAverage(nn.Linear(2, 2))
    second.load_state_dict(first.state_dict())
    nn.init.zeros_(model.weight)
    for average in (first, second):
        average.update(model)
    assert torch.equal(first.module.weight, second.module.weight)


def test_a_model_that_cannot_be_copied_is_told_how_to_do_without() -> None:
    model = nn.Linear(1, 1)
    model.lock = Lock()
    with pytest.raises(InputError, match=r"cannot be copied.*\(TypeError: cannot pickle.*\): pass average=None"):
        WeightAverage(model)
