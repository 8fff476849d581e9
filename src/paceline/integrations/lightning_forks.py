"""A LightningModule and its data as a training that can be forked.

A real `Trainer` sets the module up and never runs. Its strategy places the module and makes its optimiser. Its
precision plugin computes, steps and clips. Updates call the module's hooks in Lightning's order, so a fork under a
schedule ends with the weights that `Trainer.fit` would have made.
"""

# lightning leaves many of its types open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.utilities.model_helpers import is_overridden
from lightning.pytorch.utilities.signature_utils import is_param_in_hook_signature
from torch import Tensor, nn
from torch.optim import Optimizer

from paceline.errors import InputError, TrainingError
from paceline.integrations.lightning_setup import (
    TRAINER_SETTINGS,
    BatchTransfer,
    choose_loaders,
    connect_module,
    idle_trainer,
)
from paceline.integrations.lightning_validation import Validation
from paceline.training import AVERAGE_SHARE, EVALUATE_SHARE, BatchGroups, TorchTraining, preserve_random_state


def lightning_training(
    make_module: Callable[[], LightningModule],
    make_data: "Callable[[], Any] | None" = None,
    *,
    monitor: str | None = None,
    every: int | str | None = None,
    evaluate_share: float = EVALUATE_SHARE,
    average: float | None = AVERAGE_SHARE,
    **trainer: Any,
) -> "Callable[[], LightningTraining]":
    """A factory of trainings for `tune`, from a LightningModule class and its data.

    Args:
        make_module: builds the module; usually its class.
        make_data: builds a LightningDataModule, a DataLoader, or a pair of them for training and validation. Without it
            the module's own loaders are used.
        monitor: the value that forks are compared by, as the module logs it in validation; by default the loss that
            `validation_step` returns, or "val_loss". Without validation data it is the training loss.
        every: steps between observations, or epochs: `every="1 epoch"`. By default as many as `evaluate_share` allows,
            up to about 40 a run.
        evaluate_share: share of the time that evaluations may take, as in `TorchTraining`.
        average: share of the steps so far that the average of the weights covers; None switches it off.
        **trainer: arguments of a Trainer that make sense for a fork: accelerator, precision, accumulate_grad_batches,
            gradient_clip_val, gradient_clip_algorithm, limit_val_batches, deterministic, benchmark.
    """
    for name, maker in (("make_module", make_module), ("make_data", make_data)):
        # a module can be called too, but it does not build one
        if isinstance(maker, LightningModule) or not (maker is None or callable(maker)):
            raise InputError(
                f"{name} must be a function or a class without arguments, got a {type(maker).__name__}: pass "
                "the class itself, Net and not Net()"
            )
    unknown = sorted(set(trainer) - set(TRAINER_SETTINGS))
    if unknown:
        raise InputError(
            f"lightning_training cannot take {', '.join(unknown)}: a fork takes {', '.join(TRAINER_SETTINGS)}; it "
            "runs on one device, without loggers, callbacks and checkpoints of Lightning's"
        )
    return partial(_build, make_module, make_data, monitor, every, evaluate_share, average, trainer)


def _build(
    make_module: Callable[[], LightningModule],
    make_data: "Callable[[], Any] | None",
    monitor: str | None,
    every: int | str | None,
    share: float,
    average: float | None,
    settings: dict[str, Any],
) -> "LightningTraining":
    data = make_data() if make_data is not None else None
    trainer = idle_trainer(settings)
    return LightningTraining(
        make_module(), data, trainer, monitor=monitor, every=every, evaluate_share=share, average=average
    )


class LightningTraining(TorchTraining):
    """One run of a LightningModule, which calls the module's hooks.

    These hooks are called: prepare_data, setup, configure_model, configure_optimizers, on_fit_start, on_train_start,
    those of batches, epochs and validation, on_save_checkpoint and on_load_checkpoint. `self.log` has an effect in
    validation only. `current_epoch` and `global_step` are kept up to date. Hooks at the end of a run are not called,
    since it is not known which fork ends the run.

    Args:
        module: the module, with automatic optimisation, one optimiser and no scheduler.
        data: a LightningDataModule, a DataLoader, or a pair of them; None for the module's own loaders.
        trainer: a Trainer for one device, not run.
        monitor: the logged value that forks are compared by.
        every: steps between observations, or epochs.
        evaluate_share: share of the time that evaluations may take.
        average: share of the steps so far that the average of the weights covers.
    """

    def __init__(
        self,
        module: LightningModule,
        data: Any,
        trainer: Trainer,
        *,
        monitor: str | None = None,
        every: int | str | None = None,
        evaluate_share: float = EVALUATE_SHARE,
        average: float | None = AVERAGE_SHARE,
    ) -> None:
        self.trainer, self.epoch = trainer, 0
        optimizer = connect_module(trainer, module, data)
        train, held_out = choose_loaders(module, data)
        has_validation = held_out is not None and is_overridden("validation_step", module)
        if monitor is not None and not has_validation:
            raise InputError(
                f"monitor={monitor!r} needs validation data and a validation_step: return (train, valid) loaders or a "
                "LightningDataModule from make_data, or leave monitor out"
            )
        super().__init__(
            module,
            optimizer,
            batches=BatchGroups(train, trainer.accumulate_grad_batches),
            loss=self._loss,
            evaluate=self._evaluate if has_validation else None,
            step=self._step,
            every=every,
            evaluate_share=evaluate_share,
            average=average,
            scaler=trainer.precision_plugin,
        )
        self.module, self._transfer = module, BatchTransfer(trainer, module, data)
        self._validation = Validation(trainer, module, held_out or (), self._transfer, monitor)
        module.log = self._validation.log
        with self.randomness.activate():
            module.on_fit_start()
            module.on_train_start()

    def _step(self, model: nn.Module, optimizer: Optimizer, batches: list[Any]) -> Tensor:
        """One update, with gradients accumulated over these batches. Returns their mean loss."""
        self._update_counters()
        losses: list[Tensor] = []
        first = (self.batches.position - 1) * self.trainer.accumulate_grad_batches
        for i, batch in enumerate(batches):
            batch = self._transfer(batch)
            if self.module.on_train_batch_start(batch, first + i) == -1:
                raise TrainingError("on_train_batch_start returned -1 to end the pass: forks cannot, return None")
            closure = partial(self._closure, batch, first + i, i == 0, losses)
            if i < len(batches) - 1:
                closure()
            else:
                self.module.optimizer_step(self.epoch, first + i, self.module.optimizers(), closure)  # pyright: ignore
            self.module.on_train_batch_end({"loss": losses[-1]}, batch, first + i)
        return torch.stack(losses).mean()

    @torch.enable_grad()
    def _closure(self, batch: Any, index: int, is_first: bool, losses: list[Tensor]) -> Tensor:
        """The closure that Lightning passes to an optimiser: it computes the loss and its gradients."""
        loss = self._training_step(batch, index)
        losses.append(loss.detach())
        if is_first:
            self.module.on_before_zero_grad(self.optimizer)
            self.module.optimizer_zero_grad(self.epoch, index, self.optimizer)
        self.trainer.strategy.backward(loss / self.trainer.accumulate_grad_batches, self.optimizer)
        return loss

    def _training_step(self, batch: Any, index: int) -> Tensor:
        takes_index = is_param_in_hook_signature(self.module.training_step, "batch_idx", min_args=2)
        output: Any = self.trainer.strategy.training_step(batch, *([index] if takes_index else []))
        loss = output.get("loss") if isinstance(output, dict) else output
        if not isinstance(loss, Tensor):
            raise TrainingError(f"training_step must return a loss, or a dict with one, got {output!r}")
        return loss

    def _update_counters(self) -> None:
        """Set the module's `global_step` and `current_epoch`, and call the hooks of an epoch at its first update."""
        optimisation = self.trainer.fit_loop.epoch_loop.automatic_optimization
        optimisation.optim_progress.optimizer.step.total.completed = self.steps_done
        if self.batches.position == 1:
            if self.steps_done > 0:
                self.module.on_train_epoch_end()
                self.epoch += 1
            self._set_epoch()
            self.module.on_train_epoch_start()

    def _set_epoch(self) -> None:
        self.trainer.fit_loop.epoch_progress.current.completed = self.epoch

    def _loss(self, model: nn.Module, batches: list[Any]) -> Tensor:
        """The mean loss of the averaged weights, if there is no validation."""
        assert self.average is not None
        with self.average.swap_into(self.model), preserve_random_state():
            self.model.eval()
            return torch.stack([self._training_step(self._transfer(b), i) for i, b in enumerate(batches)]).mean()

    def _evaluate(self, model: nn.Module) -> float:
        if model is self.model:
            return self._validation.run()
        assert self.average is not None
        with self.average.swap_into(self.model):
            return self._validation.run()

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how the run continues, and what the module adds in on_save_checkpoint."""
        own = {"state_dict": self.module.state_dict(), "epoch": self.epoch, "global_step": self.steps_done}
        checkpoint = dict(own)
        self.module.on_save_checkpoint(checkpoint)
        added = {name: entry for name, entry in checkpoint.items() if name not in own}
        return {**super().state_dict(), "epoch": self.epoch, "module": added}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a training of the same kind."""
        self.epoch = int(state["epoch"])
        self._set_epoch()
        own = {"state_dict": state["model"], "epoch": self.epoch, "global_step": int(state["done"])}
        self.module.on_load_checkpoint({**own, **state["module"]})
        super().load_state_dict(state)
