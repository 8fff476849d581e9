"""The validation of a LightningModule: its hooks are called, and the means of what it logs are its values."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities.data import extract_batch_size
from lightning.pytorch.utilities.signature_utils import is_param_in_hook_signature
from torch import Tensor
from torchmetrics import Metric

from paceline.errors import TrainingError

RETURNED_LOSS, USUAL_NAME = "the loss that validation_step returned", "val_loss"


class Validation:
    """Validates a module through its own hooks.

    Args:
        trainer: the trainer with the strategy and precision of the module.
        module: the module. Its `log` must be replaced by `Validation.log`.
        batches: batches of the held-out set.
        transfer: moves a batch to the device of the module.
        monitor: name of the value, as it is logged; None for the loss that `validation_step` returns, or "val_loss".
    """

    def __init__(
        self,
        trainer: Trainer,
        module: LightningModule,
        batches: Iterable[Any],
        transfer: Callable[[Any], Any],
        monitor: str | None,
    ) -> None:
        self.trainer, self.module, self.batches = trainer, module, batches
        self.transfer, self.monitor = transfer, monitor
        self._batch: Any = None
        self._sums: dict[str, tuple[Tensor, float]] = {}
        self._metrics: dict[str, Metric] = {}

    def log(self, name: str, value: Any, *_: Any, batch_size: int | None = None, **__: Any) -> None:
        """Replace the module's `log`: means over batches, weighted by their sizes. Logs of training are ignored."""
        if not self.trainer.validating:
            return
        if isinstance(value, Metric):
            self._metrics[name] = value
            return
        sizes = extract_batch_size(self._batch) if batch_size is None and self._batch is not None else batch_size
        total, weight = self._sums.get(name, (0.0, 0.0))
        size = float(sizes or 1)
        self._sums[name] = torch.as_tensor(value).detach().double() * size + total, weight + size

    @torch.no_grad()
    def run(self) -> float:
        """The value at the current weights."""
        self._sums, self._metrics = {}, {}
        self.module.eval()
        self.trainer.validating = True
        try:
            self._run_batches()
        finally:
            self.trainer.training = True
        values = {name: float(total / weight) for name, (total, weight) in self._sums.items()}
        for name, metric in self._metrics.items():
            values[name] = float(metric.compute())
            metric.reset()
        return self._choose(values)

    def _run_batches(self) -> None:
        module, strategy, limit = self.module, self.trainer.strategy, self.trainer.limit_val_batches
        takes_index = is_param_in_hook_signature(module.validation_step, "batch_idx", min_args=2)
        module.on_validation_start()
        module.on_validation_epoch_start()
        count = limit if isinstance(limit, int) else int(limit * len(self.batches)) if limit != 1.0 else None  # pyright: ignore
        for i, batch in enumerate(islice(self.batches, count)):
            self._batch = batch = self.transfer(batch)
            module.on_validation_batch_start(batch, i)
            output: Any = strategy.validation_step(batch, *([i] if takes_index else []))
            loss = output.get("loss") if isinstance(output, dict) else output
            if isinstance(loss, Tensor):
                self.log(RETURNED_LOSS, loss)
            module.on_validation_batch_end(output, batch, i)
        self._batch = None
        module.on_validation_epoch_end()
        module.on_validation_end()

    def _choose(self, values: dict[str, float]) -> float:
        names = [self.monitor] if self.monitor is not None else [RETURNED_LOSS, USUAL_NAME]
        for name in names:
            if name in values:
                return values[name]
        logged = ", ".join(sorted(set(values) - {RETURNED_LOSS})) or "nothing"
        raise TrainingError(
            f"validation gave no {' and no '.join(names)}, it logged {logged}: return the loss from validation_step, "
            "or pass the name of what it logs as monitor="
        )
