"""Lightning's EarlyStopping during a range test, whose values say nothing about the run.

The rates of a range test rise until training diverges, and then the weights go back. Values from there would stop the
run at once, or be a best value that the run takes long to reach again.
"""

from collections.abc import Sequence

import torch
from lightning.pytorch.callbacks import EarlyStopping


class PausedEarlyStopping:
    """Callbacks that stop nothing until `resume`, and then begin as new ones.

    Args:
        callbacks: the trainer's callbacks of this kind.
    """

    def __init__(self, callbacks: Sequence[EarlyStopping]) -> None:
        self._callbacks = [(callback, callback.check_finite, callback.divergence_threshold) for callback in callbacks]
        for callback in callbacks:
            callback.check_finite, callback.divergence_threshold = False, None

    def forget(self) -> None:
        """Forget all values so far. Call it before each that does not count."""
        for callback, *_ in self._callbacks:
            callback.best_score = torch.tensor(float("inf") if callback.mode == "min" else -float("inf"))
            callback.wait_count = -1  # so that one bad value is not yet enough

    def resume(self) -> None:
        """Stop the run again for what comes next."""
        self.forget()
        for callback, check_finite, divergence_threshold in self._callbacks:
            callback.check_finite, callback.divergence_threshold = check_finite, divergence_threshold
            callback.wait_count = 0
        self._callbacks = []
