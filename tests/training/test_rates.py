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


def test_a_first_rate_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match=r"first rate must be positive, got 0.0: .* any positive rate will do"):
        rate_ratios(two_groups(0.0, 0.1))
