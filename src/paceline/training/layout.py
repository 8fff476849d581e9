"""A state as few large tensors and a text that says how it was put together.

A state has hundreds of small tensors. Written one by one they take ten times as long as the disk does; brought from a
GPU one by one, longer still. So all of a kind go into one piece of memory on the host, with copies that are queued and
waited for once. The GPU may be full: nothing is laid out there.
"""

# what a state holds is known when it is looked at
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import json
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import UninitializedTensorMixin  # pyright: ignore

from paceline.errors import TrainingError

LAYOUT, OTHERS = "paceline layout", "others"
AS_THEY_ARE = (bytes, complex, set, torch.dtype, torch.device)  # rare, and torch writes them
PINNED = 2**30  # bytes


def flattened(state: dict[str, Any]) -> dict[str, Any]:
    """The layout as text, and one tensor of each type of number."""
    pieces = _Pieces()
    layout = pieces.described(state, "state")
    return {LAYOUT: json.dumps(layout), **pieces.copied()}


def restored(flat: dict[str, Any]) -> dict[str, Any]:
    """The state that `flattened` took; its tensors are views of the large ones, but for bytes."""
    return _rebuilt(json.loads(flat[LAYOUT]), flat)


class _Pieces:
    """Tensors on their way into large ones, by the name of their type."""

    def __init__(self) -> None:
        self._tensors: dict[str, list[Tensor]] = {}
        self._ends: dict[str, int] = {}
        self._others: list[Any] = []

    def described(self, value: Any, where: str) -> Any:
        """What JSON can hold: objects with one of the names below, and plain values."""
        if isinstance(value, Tensor):
            return self._placed(value, where)
        if isinstance(value, dict):
            items: list[Any] = [
                [self.described(k, where), self.described(v, f"{where}[{k!r}]")] for k, v in value.items()
            ]
            metadata = getattr(value, "_metadata", None)
            return {"dict": items} if metadata is None else {"dict": items, "metadata": self.described(metadata, where)}
        if isinstance(value, list | tuple):
            inside: list[Any] = [self.described(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return inside if isinstance(value, list) else {"tuple": inside}
        if isinstance(value, np.generic):
            return value.item()
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, AS_THEY_ARE):
            return self._as_it_is(value)
        raise TrainingError(
            f"{where} is a {type(value).__name__}: a state must hold only tensors, numbers, strings, lists and dicts"
        )

    def _as_it_is(self, value: Any) -> dict[str, int]:
        self._others.append(value)
        return {"other": len(self._others) - 1}

    def _placed(self, tensor: Tensor, where: str) -> dict[str, Any]:
        if isinstance(tensor, UninitializedTensorMixin):
            raise TrainingError(f"{where} has no shape yet: run one batch through the model before you return it")
        if tensor.layout != torch.strided or tensor.is_quantized:
            return self._as_it_is(tensor)
        kind = str(tensor.dtype).removeprefix("torch.")
        offset = self._ends.get(kind, 0)
        self._tensors.setdefault(kind, []).append(tensor.detach())
        self._ends[kind] = offset + tensor.numel()
        return {"tensor": [kind, offset, list(tensor.shape), _dense_stride(tensor)]}

    def copied(self) -> dict[str, Any]:
        """All of them on the host."""
        devices = {tensor.device for tensors in self._tensors.values() for tensor in tensors if tensor.is_cuda}
        pieces: dict[str, Any] = {OTHERS: self._others} if self._others else {}
        for kind, tensors in self._tensors.items():
            piece = pieces[kind] = _room(self._ends[kind], tensors[0].dtype, pinned=bool(devices))
            offset = 0
            for tensor in tensors:
                place = piece.as_strided(tensor.shape, _dense_stride(tensor), offset)
                place.copy_(tensor, non_blocking=tensor.is_cuda)
                offset += tensor.numel()
        for device in devices:
            torch.cuda.synchronize(device)
        return pieces


def _room(count: int, dtype: torch.dtype, *, pinned: bool) -> Tensor:
    """Memory on the host, pinned where a GPU writes to it; gigabytes are not, they would be locked for good."""
    return torch.empty(count, dtype=dtype, pin_memory=pinned and count * dtype.itemsize <= PINNED)


def _rebuilt(value: Any, flat: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_rebuilt(item, flat) for item in value]
    if not isinstance(value, dict):
        return value
    if "other" in value:
        return flat[OTHERS][value["other"]]
    if "tensor" in value:
        kind, offset, shape, stride = value["tensor"]
        tensor: Tensor = flat[kind].as_strided(shape, stride, offset)
        return tensor.clone() if kind == "uint8" else tensor  # torch reads a generator's state from where memory begins
    if "tuple" in value:
        return tuple(_rebuilt(item, flat) for item in value["tuple"])
    rebuilt: dict[Any, Any] = {_rebuilt(key, flat): _rebuilt(item, flat) for key, item in value["dict"]}
    if "metadata" not in value:
        return rebuilt
    ordered = OrderedDict(rebuilt)
    ordered._metadata = _rebuilt(value["metadata"], flat)  # pyright: ignore  as a module's state_dict has it
    return ordered


def _dense_stride(tensor: Tensor) -> list[int]:
    """The tensor's own order in memory where it has no gaps, so that its copy is one piece."""
    if tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return list(tensor.stride())
    stride, step = list[int](), 1
    for size in reversed(tensor.shape):
        stride.insert(0, step)
        step *= size
    return stride
