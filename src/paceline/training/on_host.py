"""A state brought from a GPU to the host, to be written or sent."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


def on_host(state: Any) -> Any:
    """The same state with what lies on a GPU brought over, the tensors of one type in one piece of memory.

    A state has hundreds of small tensors: the copies are queued one after the other and waited for once, and a file
    with few pieces is written faster. The GPU may be full, so nothing is laid out there.
    """
    found = dict[torch.dtype, list[Tensor]]()
    for tensor in _tensors(state):
        if tensor.is_cuda:
            found.setdefault(tensor.dtype, []).append(tensor)
    moved = dict[int, Tensor]()
    for dtype, tensors in found.items():
        host = torch.empty(sum(tensor.numel() for tensor in tensors), dtype=dtype, pin_memory=True)
        offset = 0
        for tensor in tensors:
            place = host.as_strided(tensor.shape, _dense_stride(tensor), offset)
            moved[id(tensor)] = place.copy_(tensor.detach(), non_blocking=True)
            offset += tensor.numel()
    if not moved:
        return state
    for device in {tensor.device for tensors in found.values() for tensor in tensors}:
        torch.cuda.synchronize(device)
    return _replaced(state, moved)


def _dense_stride(tensor: Tensor) -> tuple[int, ...]:
    """The tensor's own order in memory where it has no gaps, so that its copy is one piece."""
    if tensor.ndim == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return tensor.stride()
    return torch.empty(tensor.shape, device="meta").stride()


def _tensors(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, dict | list | tuple):
        for item in state.values() if isinstance(state, dict) else state:  # pyright: ignore
            yield from _tensors(item)


def _replaced(state: Any, by: dict[int, Tensor]) -> Any:
    """The same structure with tensors replaced, by their id."""
    if isinstance(state, dict):
        return {key: _replaced(item, by) for key, item in state.items()}  # pyright: ignore
    if isinstance(state, list | tuple):
        return type(state)(_replaced(item, by) for item in state)  # pyright: ignore
    return by.get(id(state), state)
