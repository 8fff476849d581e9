"""Groups of an optimiser keep the ratio of their rates."""

import numpy as np
import pytest
import torch
from torch import nn

from paceline.errors import InputError
from paceline.training import rate_ratios, set_rates


def two_groups(first: float, second: float) -> torch.optim.Optimizer:
    one, other = nn.Linear(1, 1), nn.Linear(1, 1)
    return torch.optim.SGD([{"params": one.parameters(), "lr": first}, {"params": other.parameters(), "lr": second}])


def test_ratios_refer_to_the_first_group() -> None:
    assert rate_ratios(two_groups(0.1, 0.05)).tolist() == pytest.approx([1.0, 0.5])
    assert rate_ratios(two_groups(0.1, 0.0)).tolist() == [1.0, 0.0]


def test_a_rate_that_is_a_tensor_keeps_its_place_in_memory() -> None:
    optimizer = two_groups(0.1, 0.05)
    tensor = optimizer.param_groups[1]["lr"] = torch.tensor(0.05)
    set_rates(optimizer, np.array([0.2, 0.4]))
    assert optimizer.param_groups[0]["lr"] == 0.2
    assert optimizer.param_groups[1]["lr"] is tensor
    assert float(tensor) == pytest.approx(0.4)


def scaled(rates: tuple[float, float], scales: tuple[float, float]) -> torch.optim.Optimizer:
    optimizer = two_groups(*rates)
    for group, scale in zip(optimizer.param_groups, scales, strict=True):
        group["lr_scale"] = scale
    return optimizer


def test_scales_of_layers_are_applied_once() -> None:
    assert rate_ratios(scaled((0.1, 0.1), (0.25, 1.0))).tolist() == pytest.approx([0.25, 1.0])
    assert rate_ratios(scaled((0.1, 0.01), (0.25, 1.0))).tolist() == pytest.approx([0.25, 0.1])
    optimizer = scaled((0.1, 0.1), (0.25, 0.5))
    set_rates(optimizer, 0.2 * rate_ratios(optimizer))
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.05, 0.1])
    assert rate_ratios(optimizer).tolist() == pytest.approx([0.25, 0.5])  # they are in the rates already


def test_a_first_rate_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match=r"first rate must be positive, got 0.0: .* any positive rate will do"):
        rate_ratios(two_groups(0.0, 0.1))
