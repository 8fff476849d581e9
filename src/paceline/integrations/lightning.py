"""PyTorch Lightning: one run with a callback, and a LightningModule with its data as a training that can be forked.

The callback drives `PaceLR` from Lightning's hooks. A step is an optimiser step. The loss is what `training_step`
returns. Gradients are read before they are clipped, and the state is kept in Lightning's checkpoints.
"""

from typing import Any

from torch import Tensor

from paceline.errors import InputError

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as missing:
    raise InputError("paceline.integrations.lightning needs lightning: pip install 'paceline[lightning]'") from missing

from paceline.integrations.lightning_early_stopping import PausedEarlyStopping
from paceline.integrations.lightning_forks import LightningTraining, lightning_training
from paceline.integrations.lightning_setup import only_optimizer
from paceline.integrations.scheduler import PaceLR
from paceline.traces import LearningRateRange

__all__ = ["LightningTraining", "PaceCallback", "lightning_training"]


class PaceCallback(Callback):
    """Finds and follows the learning rate of one `Trainer.fit`: `Trainer(callbacks=[PaceCallback(lr=(1e-5, 1e-1))])`.

    `configure_optimizers` must return one optimiser and no scheduler. In a `fast_dev_run` the callback does nothing.
    EarlyStopping does not count the validations of the range test, whose weights are given up.

    Args:
        lr: lower and upper bound of the rate.
        steps: optimiser steps in all; by default those of the trainer (`max_steps`, or `max_epochs`).
    """

    def __init__(self, lr: "tuple[float, float] | LearningRateRange", steps: int | None = None) -> None:
        self.lr, self.steps = LearningRateRange.of(lr), steps
        self.pace: PaceLR | None = None
        self._loaded: dict[str, Any] = {}
        self._losses: list[Tensor] = []
        self._done = 0
        self._fits = True
        self._early_stopping = PausedEarlyStopping(())

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """See what a checkpoint is loaded for."""
        self._fits = stage == "fit"

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Take control of the rate. Weights and optimiser are in place now."""
        if getattr(trainer, "fast_dev_run", False):
            return
        if trainer.world_size > 1:
            raise InputError(
                f"PaceCallback needs a single device, got {trainer.world_size} processes: losses would differ between "
                "them, and rates with them; pass devices=1"
            )
        optimizer = only_optimizer(trainer, pl_module)
        earlier = 0 if self._loaded else trainer.global_step  # steps of a run without this callback
        self.pace = PaceLR(optimizer, self.lr, self._total_steps(trainer) - earlier, model=pl_module)
        if self._loaded:
            self.pace.load_state_dict(self._loaded)
        self._loaded, self._losses, self._done = {}, [], trainer.global_step
        if self.pace.in_range_test:
            self._early_stopping = PausedEarlyStopping(trainer.early_stopping_callbacks)  # pyright: ignore

    def on_before_optimizer_step(self, trainer: Trainer, pl_module: LightningModule, optimizer: Any) -> None:
        """Read the gradients before they are clipped."""
        if self.pace is not None:
            self.pace.read_gradients()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Collect the loss of the batch. After an update, set the next rate."""
        if self.pace is None:
            return
        if outputs:  # empty if training_step skipped the batch
            loss: Tensor = outputs["loss"]  # divided by the number of batches of one update
            self._losses.append(loss.detach() * trainer.accumulate_grad_batches)
        if trainer.global_step == self._done or not self._losses:
            return
        self.pace.step(sum(self._losses[1:], self._losses[0]) / len(self._losses))
        self._losses, self._done = [], trainer.global_step
        if self.pace.in_range_test:
            self._early_stopping.forget()
        else:
            self._early_stopping.resume()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Leave other callbacks as they were. A run that was stopped early, as by EarlyStopping, is over."""
        self._early_stopping.resume()
        if self.pace is not None and trainer.should_stop:
            self.pace.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Leave other callbacks as they were."""
        self._early_stopping.resume()
        if self.pace is not None:
            self.pace.close()

    def state_dict(self) -> dict[str, Any]:
        """The state that Lightning puts into its checkpoints."""
        return self.pace.state_dict() if self.pace is not None else self._loaded

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue the schedule of a checkpoint, once training starts. Validating or testing one changes nothing."""
        if self._fits:
            self._loaded = state_dict

    def _total_steps(self, trainer: Trainer) -> int:
        steps = trainer.estimated_stepping_batches if self.steps is None else self.steps
        if not 0 < steps < float("inf"):
            raise InputError(
                "PaceCallback needs the length of the run, and the trainer has none: pass max_steps or max_epochs to "
                "the Trainer, or steps= to PaceCallback"
            )
        return int(steps)
