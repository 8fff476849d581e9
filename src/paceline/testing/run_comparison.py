"""Whether two runs are the same: their observations, and every number in their states."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from paceline.training import ArrayLike, Observation, values_by_weights

Observations = list[Observation]


def different_observation(first: Observations, second: Observations, tolerance: float) -> str:
    """The first step at which two runs report other values, in words; empty if there is none.

    Only steps that both runs report are compared: a run that is paused may report there as well.
    """
    others = dict(second)
    for step, value in first:
        if step not in others:
            continue
        a, b = values_by_weights(value), values_by_weights(others[step])
        for weights in {*a, *b}:
            if weights not in a or weights not in b:
                return f"step {step:,} has a value of {weights} weights in one run only"
            if not _is_close(a[weights], b[weights], tolerance):
                return f"step {step:,} has {a[weights]:.9g} and {b[weights]:.9g} ({weights} weights)"
    return ""


def different_entry(first: Any, second: Any, tolerance: float) -> str:
    """The first entry at which two states differ, such as "model.0.weight"; empty if there is none."""
    a, b = dict(_entries(first, "")), dict(_entries(second, ""))
    for name in {**a, **b}:
        if name not in a or name not in b or not _is_same(a[name], b[name], tolerance):
            return name
    return ""


def different_weights(first: Any, second: Any, tolerance: float) -> str:
    """The first tensor of floating-point numbers at which two states differ; empty if there is none.

    The other entries, such as the state of a generator that is not used, may depend on how a runner trains.
    """
    a, b = ({n: t for n, t in _entries(state, "") if _holds_numbers(t)} for state in (first, second))
    return different_entry(a, b, tolerance)


def _holds_numbers(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _entries(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _entries(item, f"{name}.{key}" if name else str(key))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            yield from _entries(item, f"{name}.{number}")
    elif isinstance(value, np.ndarray | ArrayLike) and not isinstance(value, torch.Tensor):
        yield from _entries(_as_tensor_or_list(np.asarray(value)), name)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield name, value


def _as_tensor_or_list(array: np.ndarray) -> Any:
    """A tensor, if torch has this type of number."""
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > 16:
        return array.tolist()
    return torch.as_tensor(array.astype(array.dtype.newbyteorder("=")))


def _is_same(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        x, y = a.detach().cpu(), b.detach().cpu()
        if x.shape != y.shape or x.dtype != y.dtype:
            return False
        if torch.equal(x, y):
            return True
        is_number = x.is_floating_point() or x.is_complex()
        return is_number and bool(torch.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True))
    if isinstance(a, float) and isinstance(b, float):
        return _is_close(a, b, tolerance)
    return bool(a == b)


def _is_close(a: Any, b: Any, tolerance: float) -> bool:
    x, y = float(a), float(b)
    return x == y or (math.isnan(x) and math.isnan(y)) or math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)
