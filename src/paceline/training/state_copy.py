"""A copy of a state, taken while a run goes on.

A state refers to the tensors that training changes in place. The copy stays what it is: on the same device, which is
fast, or in the host's memory if the device has no room for it.
"""

# the types in a state are only known at run time
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paceline.training.state_layout import flatten_state


def copy_state(state: dict[str, Any]) -> dict[str, Any]:
    """A copy that shares no memory with the state."""
    try:
        return _copy(state)
    except torch.cuda.OutOfMemoryError:
        return _copy(state, "cpu")


def same_states(some: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two states are equal bit for bit."""
    mine, others = flatten_state(some), flatten_state(other)
    return mine.keys() == others.keys() and all(_same(mine[name], others[name]) for name in mine)


def _same(some: Any, other: Any) -> bool:
    if isinstance(some, Tensor) and isinstance(other, Tensor):
        mine, others = (tensor.contiguous().view(-1).view(torch.uint8) for tensor in (some, other))
        return torch.equal(mine, others)
    return repr(some) == repr(other)


def _copy(value: Any, device: "str | None" = None) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone() if device is None else value.detach().to(device, copy=True)
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        items = {key: _copy(item, device) for key, item in value.items()}
        if not isinstance(value, OrderedDict):
            return items
        ordered = OrderedDict(items)
        if hasattr(value, "_metadata"):  # as a module's state_dict has
            ordered._metadata = value._metadata  # pyright: ignore
        return ordered
    if isinstance(value, list | tuple):
        items = [_copy(item, device) for item in value]
        return items if isinstance(value, list) else tuple(items)
    return value
