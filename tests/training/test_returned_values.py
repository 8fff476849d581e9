"""What users' functions return is checked where it comes in."""

import pytest
import torch

from paceline.errors import InputError
from paceline.training.returned_values import check_evaluation, check_loss, check_step, loss_that_is_not_needed


def test_what_is_one_number_passes() -> None:
    loss = torch.tensor(0.5, requires_grad=True)
    assert check_loss(loss) is loss
    assert check_step(loss) is loss
    assert check_evaluation(loss) is loss
    assert check_step(0.25) == 0.25
    assert check_evaluation(3) == 3.0


@pytest.mark.parametrize("check", [check_loss, check_step, check_evaluation])
@pytest.mark.parametrize("given", [None, torch.ones(2), (1.0, 2.0)])
def test_what_is_not_one_number_is_refused(check, given) -> None:
    with pytest.raises(InputError, match=r"one number, got (None|one of shape|a tuple)"):
        check(given)


def test_a_missing_loss_is_told_of_when_it_is_needed() -> None:
    with pytest.raises(InputError, match="pass loss= too"):
        loss_that_is_not_needed(None, None)
