"""Epochs as steps: `every="1 epoch"`, for users who think of their data and not of updates."""

import re
from collections.abc import Iterable
from typing import Any

from paceline.errors import InputError

_EPOCHS = re.compile(r"(\d+(?:\.\d+)?) epochs?", re.ASCII)


def steps_between(every: "int | str | None", batches: Iterable[Any]) -> int | None:
    """Steps between observations, of which each takes one of the batches.

    Args:
        every: so many steps, or epochs as text, such as "1 epoch" or "0.5 epochs"; None if that is left open.
        batches: what an epoch consists of.

    >>> steps_between("0.5 epochs", range(100))
    50
    """
    if not isinstance(every, str):
        return every
    epochs = _EPOCHS.fullmatch(every)
    if epochs is None:
        raise InputError(
            f'every must be a number of steps, or epochs such as "1 epoch" or "0.5 epochs", got {every!r}: write it so'
        )
    steps = round(float(epochs[1]) * _length(batches, every))
    if steps < 1:
        raise InputError(f"every must be one step or more, got {every!r}, less than half a batch: pass more epochs")
    return steps


def _length(batches: Any, every: str) -> int:
    """How many batches an epoch has."""
    try:
        return len(batches)
    except (TypeError, NotImplementedError):
        raise InputError(
            f"every={every!r} needs to know how many batches an epoch has, and these have no length "
            f"({type(batches).__name__}): give `every` in steps, or the batches a __len__"
        ) from None
