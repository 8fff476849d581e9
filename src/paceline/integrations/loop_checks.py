"""Checks of the loop around `PaceLR`: who sets the rates, and how often the optimiser steps between two calls.

The optimiser's steps are counted by a hook of torch's. A call without a step is normal now and then, because a gradient
scaler skips updates. Some optimisers update the weights in another way: a recorded GPU graph, or SAM's two steps. So a
call counts as idle only if the weights are unchanged, too.
"""

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isclose
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from paceline.errors import TrainingError

RATE_TOLERANCE = 1e-5  # relative: a rate may be a 32-bit tensor
MOST_STEPS = 10  # of the optimiser between two calls; some loops update a critic several times
MOST_IDLE_CALLS = 25  # in a row: a gradient scaler has halved its scale as often
IDLE_STRETCHES = 5  # with at least as many idle calls as others: no gradient scaler skips like that

_hooks: "weakref.WeakKeyDictionary[Optimizer, RemovableHandle]" = weakref.WeakKeyDictionary()


def check_rates(optimizer: Optimizer, expected: "Sequence[float | Tensor]", step: int) -> None:
    """Refuse rates that are not those that were set last."""
    found = [float(group["lr"]) for group in optimizer.param_groups]
    if len(found) != len(expected):
        raise TrainingError(
            f"the optimiser has {len(found)} parameter groups at step {step:,}, and had {len(expected)} when PaceLR "
            "was constructed: add all groups before that"
        )
    for i, (rate, last) in enumerate(zip(found, expected, strict=True)):
        if not isclose(rate, float(last), rel_tol=RATE_TOLERANCE):
            group = f" of parameter group {i}" if len(found) > 1 else ""
            raise TrainingError(
                f"the learning rate{group} at step {step:,} is {rate:.4g}, but PaceLR had set {float(last):.4g}: "
                "something else sets it too. Remove the other scheduler, or the line that sets group['lr']. Load a "
                "state of the optimiser before PaceLR is constructed, or load that of PaceLR after it"
            )


class UpdateCounter:
    """Counts the steps of an optimiser between two calls of `PaceLR.step`.

    Args:
        optimizer: the optimiser; one that wraps another, such as accelerate's, counts by the one inside.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.steps = 0  # of the optimiser, since the last call
        self.total_steps = 0
        self._calls = 0
        self._idle_calls = 0
        self._idle_in_a_row = 0
        self._idle_stretches = 0
        counter = weakref.ref(self)

        def hook(*_: Any) -> None:
            if (alive := counter()) is not None:
                alive._count()

        while isinstance(inside := getattr(optimizer, "optimizer", None), Optimizer):
            optimizer = inside
        if optimizer in _hooks:  # of an earlier PaceLR, which this one replaces
            _hooks[optimizer].remove()
        with suppress(AttributeError):  # a class that never calls Optimizer.__init__ has no hooks
            _hooks[optimizer] = optimizer.register_step_post_hook(hook)
        self._handle = _hooks.get(optimizer)

    def close(self) -> None:
        """Count no more."""
        if self._handle is not None:
            self._handle.remove()

    def _count(self) -> None:
        self.steps += 1
        self.total_steps += 1
        if self.steps > MOST_STEPS:
            raise TrainingError(
                f"optimizer.step() was called {self.steps} times in a row without pace.step(loss): call that after "
                "each optimizer.step(), not once an epoch. Call pace.close() first if you go on without PaceLR"
            )

    def check(self, is_explained: Callable[[], bool]) -> None:
        """Check the steps since the last call.

        Args:
            is_explained: whether there is a reason for a call without a step of the optimiser.
        """
        steps, self.steps = self.steps, 0
        self._calls += 1
        if steps or is_explained():
            self._idle_in_a_row = 0
            return
        self._idle_calls += 1
        self._idle_in_a_row += 1
        self._idle_stretches += self._idle_in_a_row == 1
        is_often = self._idle_stretches >= IDLE_STRETCHES and 2 * self._idle_calls >= self._calls
        if is_often or self._idle_in_a_row >= MOST_IDLE_CALLS:
            raise TrainingError(
                f"{self._idle_calls:,} of {self._calls:,} calls of pace.step(loss) came without an optimizer.step() "
                "before them: call it once after each optimizer.step(). If gradients are accumulated over several "
                "batches, call it after the last of them only (with accelerate: if accelerator.sync_gradients)"
            )
