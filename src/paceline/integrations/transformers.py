"""Hugging Face's Trainer: one run with a callback, and a Trainer as a training that can be forked.

The callback drives `PaceLR`. A Trainer shows its callbacks neither the loss nor the gradients before clipping. So both
are read with hooks of torch on the model, which are removed when training ends. The rates of the Trainer's own
scheduler are overwritten.
"""

# transformers leaves many of its types open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from paceline.errors import InputError

try:
    from transformers import TrainerCallback
except ImportError as missing:
    message = "paceline.integrations.transformers needs transformers: pip install 'paceline[transformers]'"
    raise InputError(message) from missing

from paceline.integrations.scheduler import PaceLR
from paceline.integrations.transformers_forks import TrainerTraining, check_single_device, trainer_training
from paceline.traces import LearningRateRange
from paceline.training import set_rates

__all__ = ["PaceCallback", "TrainerTraining", "trainer_training"]

STATE_FILE = "paceline.pt"


class PaceCallback(TrainerCallback):
    """Finds and follows the learning rate of one `Trainer.train`: `Trainer(callbacks=[PaceCallback(lr=(1e-6, 1e-2))])`.

    The loss is the one in the model's output. If `compute_loss` computes another, call `note(loss)` there.
    `lr_scheduler_type` and `warmup_steps` have no effect. The state is kept in the Trainer's checkpoint folders.
    Nothing is evaluated during the range test, whose weights are given up.

    Args:
        lr: lower and upper bound of the rate.
        steps: optimiser steps in all; by default those of the trainer (`max_steps`, or `num_train_epochs`).
        resume_from: the checkpoint folder that training resumes from, if it is not below `output_dir`.
    """

    def __init__(
        self,
        lr: "tuple[float, float] | LearningRateRange",
        steps: int | None = None,
        resume_from: "str | Path | None" = None,
    ) -> None:
        self.lr, self.steps, self.resume_from = LearningRateRange.of(lr), steps, resume_from
        self.pace: PaceLR | None = None
        self._rates: list[Any] = []
        self._hooks: list[Any] = []
        self._noted_losses: list[Tensor] = []
        self._outputs: list[tuple[Tensor, bool]] = []

    def note(self, loss: Tensor) -> None:
        """Pass the mean loss of a batch, from your own `compute_loss`. The model's output is then not read."""
        self._noted_losses.append(loss.detach())

    def on_init_end(self, args: Any, state: Any, control: Any, *, lr_scheduler: Any = None, **_: Any) -> None:
        """Refuse a scheduler of the user's own: the trainer makes one only when training begins."""
        if lr_scheduler is not None:
            raise InputError(
                f"the Trainer was given a scheduler ({type(lr_scheduler).__name__}), and two cannot set one rate: pass "
                "optimizers=(optimizer, None) with PaceCallback"
            )

    def on_train_begin(
        self,
        args: Any,
        state: Any,
        control: Any,
        *,
        model: Any = None,
        optimizer: Any = None,
        lr_scheduler: Any = None,
        **_: Any,
    ) -> None:
        """Take control of the rate. Weights and optimiser are in place now."""
        check_single_device(args, "PaceCallback")
        if isinstance(lr_scheduler, ReduceLROnPlateau):
            raise InputError("lr_scheduler_type must not be reduce_lr_on_plateau with PaceCallback: leave it out")
        unwrapped = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
        for group in unwrapped.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])  # a warm-up has already set it to zero
        resumed = state.global_step > 0
        self.pace = PaceLR(unwrapped, self.lr, self.steps or state.max_steps, model=model)
        if resumed:
            self.pace.load_state_dict(torch.load(self._state_file(args, state.global_step), "cpu", weights_only=True))
        self._rates, self._noted_losses, self._outputs = self.pace.get_last_lr(), [], []
        self._add_hooks(model)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, *, lr_scheduler: Any = None, **_: Any) -> None:
        """Check the rate of this update, and let the trainer log it. It reads it from its own scheduler next."""
        assert self.pace is not None
        self.pace.check_rates()
        if lr_scheduler is not None:
            lr_scheduler._last_lr = self._rates

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Read the loss of the update, and overwrite the rate that the trainer's scheduler has just set."""
        assert self.pace is not None
        set_rates(self.pace.optimizer, np.array(self._rates))
        self.pace.step(self._loss())
        self._rates, self._noted_losses, self._outputs = self.pace.get_last_lr(), [], []
        self._skip_evaluation(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Skip the evaluation in the range test here too."""
        self._skip_evaluation(control)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save the state in the checkpoint folder of the trainer."""
        folder = _folder(args, state.global_step)
        if self.pace is not None and args.should_save and folder.is_dir():
            torch.save(self.pace.state_dict(), folder / STATE_FILE)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Remove the hooks from the model. A run that was stopped early, as by EarlyStoppingCallback, is over."""
        self._remove_hooks()
        if self.pace is not None and state.global_step < state.max_steps:
            self.pace.close()

    def _skip_evaluation(self, control: Any) -> None:
        """Evaluate no weights that are given up: they would count as the best, or stop the run early."""
        if self.pace is not None and self.pace.in_range_test:
            control.should_evaluate = False

    def _add_hooks(self, model: nn.Module) -> None:
        """Read the loss of each forward pass in training, and each gradient once it is complete."""
        self._remove_hooks()
        assert self.pace is not None
        self._hooks = [model.register_forward_hook(self._forward, with_kwargs=True)]
        parameters = [p for group in self.pace.optimizer.param_groups for p in group["params"]]
        for i, parameter in enumerate(parameters):
            if parameter.requires_grad:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(partial(self._gradient, i)))

    def _remove_hooks(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if not module.training:
            return
        loss = output.get("loss") if isinstance(output, Mapping) else output[0] if isinstance(output, tuple) else None
        if isinstance(loss, Tensor) and loss.numel() == 1:
            is_share = kwargs.get("num_items_in_batch") is not None  # divided by the items of all batches of the update
            self._outputs.append((loss.detach(), is_share))

    def _gradient(self, index: int, parameter: Tensor) -> None:
        assert self.pace is not None
        self.pace.read_gradients(index)

    def _loss(self) -> Tensor:
        """The loss of the update: a mean over its batches, or a sum of shares."""
        if self._noted_losses:
            return torch.stack(self._noted_losses).mean()
        if not self._outputs:
            raise InputError(
                "the model's output has no loss, as with label smoothing or a compute_loss of your own: call "
                "note(loss) of the PaceCallback in compute_loss"
            )
        losses = torch.stack([loss.reshape(()) for loss, _ in self._outputs])
        return losses.sum() if self._outputs[0][1] else losses.mean()

    def _state_file(self, args: Any, step: int) -> Path:
        folders = [Path(p) for p in (self.resume_from, args.resume_from_checkpoint) if isinstance(p, str | Path)]
        for folder in [*folders, _folder(args, step)]:
            if (folder / STATE_FILE).exists():
                return folder / STATE_FILE
        raise InputError(
            f"training resumes at step {step:,}, and there is no {STATE_FILE} in {_folder(args, step)}: pass the "
            "checkpoint's folder as resume_from=, or start again from step 0 if it was made without PaceCallback"
        )


def _folder(args: Any, step: int) -> Path:
    return Path(args.output_dir) / f"checkpoint-{step}"
