"""A state as a few large tensors, and a text that describes how to take them apart.

A state has hundreds of small tensors. Writing them one by one takes ten times as long as the disk needs; copying them
from a GPU one by one takes longer still. So all tensors of one type are copied into a single piece of host memory. The
copies are queued and waited for once. Nothing is allocated on the GPU, which may be full.
"""

# the types in a state are only known at run time
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import json
from collections import OrderedDict
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import UninitializedTensorMixin  # pyright: ignore

from paceline.errors import TrainingError

LAYOUT, OTHERS = "paceline layout", "others"
TORCH_TYPES = (bytes, torch.dtype, torch.device)  # rare, and torch writes them itself
LARGEST_PINNED = 2**30  # bytes


@runtime_checkable
class ArrayLike(Protocol):
    """An array of another library that NumPy can read, such as JAX's."""

    def __array__(self) -> np.ndarray: ...

    def __dlpack__(self) -> Any: ...


def flatten_state(state: dict[str, Any]) -> dict[str, Any]:
    """The layout as text, and one tensor per type of number."""
    tensors = _Tensors()
    layout = tensors.describe(state, "state")
    return {LAYOUT: json.dumps(layout), **tensors.copy_to_host()}


def restore_state(flat: dict[str, Any]) -> dict[str, Any]:
    """The state that `flatten_state` was given. Its tensors are views of the large ones, except those of bytes."""
    return _restore(json.loads(flat[LAYOUT]), flat)


class _Tensors:
    """The tensors of a state by the name of their type, and their places in one large tensor per type."""

    def __init__(self) -> None:
        self._tensors: dict[str, list[Tensor]] = {}
        self._ends: dict[str, int] = {}
        self._others: list[Any] = []

    def describe(self, value: Any, where: str) -> Any:
        """A value as JSON: objects with one of the keys below, and plain values. `where` is for error messages."""
        if value is None or type(value) in (bool, int, float, str):  # most of them, and the checks below take long
            return value
        if isinstance(value, Tensor):
            return self._add(value, where)
        if isinstance(value, dict):
            items: list[Any] = [
                [self.describe(k, where), self.describe(v, f"{where}[{k!r}]")] for k, v in value.items()
            ]
            metadata = getattr(value, "_metadata", None)
            return {"dict": items} if metadata is None else {"dict": items, "metadata": self.describe(metadata, where)}
        if isinstance(value, list | tuple):
            inside: list[Any] = [self.describe(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return inside if isinstance(value, list) else {"tuple": inside}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray | ArrayLike):
            return self._add_array(np.asarray(value), where)
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        if isinstance(value, set):
            return {"set": [self.describe(item, where) for item in value]}
        if isinstance(value, TORCH_TYPES):
            return self._add_other(value)
        raise TrainingError(
            f"{where} is a {type(value).__name__}: a state must hold only tensors, arrays, numbers, strings, lists and "
            "dicts"
        )

    def _add_array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        """An array as its bytes, since torch does not have all of NumPy's types."""
        if array.dtype.hasobject or array.dtype.fields is not None:
            raise TrainingError(f"{where} is an array of {array.dtype}: a state must hold arrays of numbers or strings")
        content = torch.as_tensor(np.frombuffer(array.tobytes(), np.uint8).copy())
        # NumPy knows the types of ml_dtypes by their names alone
        name = array.dtype.name if array.dtype.kind == "V" else array.dtype.str
        return {"array": [name, list(array.shape), self._add(content, where)]}

    def _add_other(self, value: Any) -> dict[str, int]:
        self._others.append(value)
        return {"other": len(self._others) - 1}

    def _add(self, tensor: Tensor, where: str) -> dict[str, Any]:
        if isinstance(tensor, UninitializedTensorMixin):
            raise TrainingError(f"{where} has no shape yet: run one batch through the model before you return it")
        if tensor.layout != torch.strided or tensor.is_quantized:
            return self._add_other(tensor)
        kind = str(tensor.dtype).removeprefix("torch.")
        offset = self._ends.get(kind, 0)
        self._tensors.setdefault(kind, []).append(tensor.detach())
        self._ends[kind] = offset + tensor.numel()
        return {"tensor": [kind, offset, list(tensor.shape), _dense_stride(tensor)]}

    def copy_to_host(self) -> dict[str, Any]:
        """The large tensors, in host memory."""
        devices = {tensor.device for tensors in self._tensors.values() for tensor in tensors if tensor.is_cuda}
        flat: dict[str, Any] = {OTHERS: self._others} if self._others else {}
        for kind, tensors in self._tensors.items():
            large = flat[kind] = _empty(self._ends[kind], tensors[0].dtype, pinned=bool(devices))
            offset = 0
            for tensor in tensors:
                part = large.as_strided(tensor.shape, _dense_stride(tensor), offset)
                part.copy_(tensor, non_blocking=tensor.is_cuda)
                offset += tensor.numel()
        for device in devices:
            torch.cuda.synchronize(device)
        return flat


def _empty(count: int, dtype: torch.dtype, *, pinned: bool) -> Tensor:
    """Host memory, pinned if a GPU writes to it. Gigabytes are not pinned, since torch would never release them."""
    return torch.empty(count, dtype=dtype, pin_memory=pinned and count * dtype.itemsize <= LARGEST_PINNED)


def _restore(value: Any, flat: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_restore(item, flat) for item in value]
    if not isinstance(value, dict):
        return value
    if "other" in value:
        return flat[OTHERS][value["other"]]
    if "tensor" in value:
        kind, offset, shape, stride = value["tensor"]
        tensor: Tensor = flat[kind].as_strided(shape, stride, offset)
        # torch reads a generator's state from the start of the memory that a tensor is a view of
        return tensor.clone() if kind == "uint8" else tensor
    if "array" in value:
        name, shape, content = value["array"]
        return np.frombuffer(_restore(content, flat).numpy(), _dtype(name)).reshape(shape)
    if "complex" in value:
        return complex(*value["complex"])
    if "set" in value:
        return {_restore(item, flat) for item in value["set"]}
    if "tuple" in value:
        return tuple(_restore(item, flat) for item in value["tuple"])
    restored: dict[Any, Any] = {_restore(key, flat): _restore(item, flat) for key, item in value["dict"]}
    if "metadata" not in value:
        return restored
    ordered = OrderedDict(restored)
    ordered._metadata = _restore(value["metadata"], flat)  # pyright: ignore  as in a module's state_dict
    return ordered


def _dtype(name: str) -> np.dtype[Any]:
    """The type of number by its name; those that NumPy does not have, such as bfloat16, are ml_dtypes'."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # comes with JAX, whose arrays have these types

        return np.dtype(getattr(ml_dtypes, name))


def _dense_stride(tensor: Tensor) -> list[int]:
    """The strides of a copy without gaps. Channels-last images keep their order in memory."""
    if tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return list(tensor.stride())
    stride, step = list[int](), 1
    for size in reversed(tensor.shape):
        stride.insert(0, step)
        step *= size
    return stride
