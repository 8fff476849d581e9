"""What the functions of a `TorchTraining` return, checked, so that a mistake is named and not what follows from it."""

from typing import Any, NoReturn

import torch
from torch import Tensor

from paceline.errors import InputError


def check_loss(value: Any) -> Tensor:
    """What `loss(model, batch)` returned: a tensor of one number, or an error."""
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise InputError(f"loss(model, batch) must return a tensor of one number, got {_described(value)}")
    return value


def check_step(value: Any) -> Tensor:
    """What `step(model, optimizer, batch)` returned, as a tensor: the loss before the update, or an error."""
    if isinstance(value, Tensor) and value.numel() == 1:
        return value
    try:
        return torch.as_tensor(float(value))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"step(model, optimizer, batch) must return the loss before the update, one number, got {_described(value)}"
        ) from error


def check_evaluation(value: Any) -> "float | Tensor":
    """What `evaluate(model)` returned: one number, or an error. A tensor stays on its device."""
    if isinstance(value, Tensor) and value.numel() == 1:
        return value
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        advice = "" if value is None else ": take its mean, or a sum"
        raise InputError(f"evaluate(model) must return one number, got {_described(value)}{advice}") from error


def loss_that_is_not_needed(model: Any, batch: Any) -> NoReturn:
    """Stands in for `loss` if `step` and `evaluate` do its work."""
    raise InputError("this training has no loss, because it has step= and evaluate=: pass loss= too")


def _described(value: Any) -> str:
    if value is None:
        return "None: does the function lack a `return`?"
    return f"one of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
