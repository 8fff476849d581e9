"""A run of `PaceLR` that ends before its rate has decayed: its loop was shorter than `steps`.

Such a run ends near its peak rate, and its weights are worse than they need be. Only the end of the program shows it,
or that of the PaceLR. Nothing is said if an exception ended the program, or if the state was saved at the last step.
"""

import os
import sys
import warnings
import weakref

from paceline.strategy import SingleRunController

DECAYED = 0.1  # the share of its peak below which a rate counts as decayed


class UnfinishedRunWarning:
    """Warns when a PaceLR is deleted, or the program ends, before the rate has decayed.

    Args:
        owner: the PaceLR.
        controller: its controller.
    """

    def __init__(self, owner: object, controller: SingleRunController) -> None:
        self._controller, self._process = controller, os.getpid()
        self.saved_at = controller.done  # nothing to say before the first step
        self.optimizer_steps = 0
        self._finalizer = weakref.finalize(owner, self._warn)

    def close(self) -> None:
        """Say nothing."""
        self._finalizer.detach()

    def _warn(self) -> None:
        is_failed = getattr(sys, "last_value", None) is not None
        if is_failed or os.getpid() != self._process or self.saved_at == self._controller.done:
            return
        message = unfinished_run(self._controller, self.optimizer_steps)
        if message:
            warnings.warn(message, stacklevel=1)  # the caller is the garbage collector


def unfinished_run(controller: SingleRunController, optimizer_steps: int) -> str:
    """What is wrong with a run that ends now; nothing if its rate has decayed."""
    done, steps, peak = controller.done, controller.steps, 10.0**controller.peak
    share = controller.rate_at(done - 1) / peak
    if controller.run_start is not None and ((share <= DECAYED and 2 * done > steps) or done >= steps):
        return ""
    where = "within the range test" if controller.run_start is None else f"at {share:.0%} of its peak rate"
    calls = f" (after {optimizer_steps:,} steps of the optimiser)" if optimizer_steps > done else ""
    return (
        f"a run with PaceLR ended at step {done:,} of {steps:,}{calls}, {where}, so the rate has not decayed and the "
        "weights are worse than they could be: pass as steps= how often the loop calls pace.step. If you stopped on "
        "purpose, save pace.state_dict() to go on later, or call pace.close()"
    )
