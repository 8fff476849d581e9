"""Hugging Face's Trainer: one run with a callback, and a Trainer as a training that can be forked.

The callback drives `PaceLR`. A Trainer's callbacks see neither the loss nor gradients before they are clipped, so both
are read by torch's hooks on the model, which are gone when training ends. The Trainer's own scheduler is overruled.
"""

# transformers leaves many of its types open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

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

__all__ = ["PaceCallback", "TrainerTraining", "trainer_training"]

STATE = "paceline.pt"


class PaceCallback(TrainerCallback):
    """Finds and follows the learning rate of one `Trainer.train`: `Trainer(callbacks=[PaceCallback(lr=(1e-6, 1e-2))])`.

    The loss is the one in the model's output. Where `compute_loss` computes another, call `note(loss)` there. Whatever
    `lr_scheduler_type` and `warmup_steps` say is overruled. The state is in the Trainer's checkpoint folders.

    Args:
        lr: lower and upper bound of the rate.
        steps: optimiser steps in all; by default what the trainer was told (`max_steps`, or `num_train_epochs`).
        resume_from: the checkpoint folder that training resumes from, where it is not below `output_dir`.
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
        self._own: list[Tensor] = []
        self._outputs: list[tuple[Tensor, bool]] = []

    def note(self, loss: Tensor) -> None:
        """Take the mean loss of a batch from a `compute_loss` of your own; the model's output is not read then."""
        self._own.append(loss.detach())

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
        """Take the rate over, now that weights and optimiser are in place."""
        check_single_device(args, "PaceCallback")
        if isinstance(lr_scheduler, ReduceLROnPlateau):
            raise InputError("lr_scheduler_type must not be reduce_lr_on_plateau with PaceCallback: leave it out")
        bare = getattr(optimizer, "optimizer", optimizer)  # accelerate wraps it
        for group in bare.param_groups:
            group["lr"] = group.get("initial_lr", group["lr"])  # a warm-up has already set it to zero
        resumed = state.global_step > 0
        self.pace = PaceLR(bare, self.lr, self.steps or state.max_steps, model=model)
        if resumed:
            self.pace.load_state_dict(torch.load(self._saved(args, state.global_step), "cpu", weights_only=True))
        self._rates, self._own, self._outputs = self.pace.get_last_lr(), [], []
        self._listen(model)

    def on_optimizer_step(self, args: Any, state: Any, control: Any, *, lr_scheduler: Any = None, **_: Any) -> None:
        """Let the trainer log the rate that this update was made at: it asks its own scheduler next."""
        if lr_scheduler is not None:
            lr_scheduler._last_lr = self._rates

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take the loss of the update, and set the next rate over what the trainer's scheduler has just set."""
        assert self.pace is not None
        self.pace.step(self._loss())
        self._rates, self._own, self._outputs = self.pace.get_last_lr(), [], []

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Put the state beside what the trainer has saved."""
        folder = _folder(args, state.global_step)
        if self.pace is not None and args.should_save and folder.is_dir():
            torch.save(self.pace.state_dict(), folder / STATE)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leave the model as it was."""
        self._deafen()

    # what is heard

    def _listen(self, model: nn.Module) -> None:
        """Hear the loss of each forward pass in training, and each gradient when it is whole."""
        self._deafen()
        assert self.pace is not None
        self._hooks = [model.register_forward_hook(self._forward, with_kwargs=True)]
        parameters = [p for group in self.pace.optimizer.param_groups for p in group["params"]]
        for i, parameter in enumerate(parameters):
            if parameter.requires_grad:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(partial(self._gradient, i)))

    def _deafen(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _forward(self, module: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if not module.training:
            return
        loss = output.get("loss") if isinstance(output, Mapping) else output[0] if isinstance(output, tuple) else None
        if isinstance(loss, Tensor) and loss.numel() == 1:
            is_share = kwargs.get("num_items_in_batch") is not None  # of the items of all batches of the update
            self._outputs.append((loss.detach(), is_share))

    def _gradient(self, place: int, parameter: Tensor) -> None:
        assert self.pace is not None
        self.pace.read_gradients(place)

    def _loss(self) -> Tensor:
        """The loss of the update: a mean over its batches, or a sum of shares."""
        if self._own:
            return torch.stack(self._own).mean()
        if not self._outputs:
            raise InputError(
                "the model's output has no loss, as with label smoothing or a compute_loss of your own: call "
                "note(loss) of the PaceCallback in compute_loss"
            )
        losses = torch.stack([loss.reshape(()) for loss, _ in self._outputs])
        return losses.sum() if self._outputs[0][1] else losses.mean()

    def _saved(self, args: Any, step: int) -> Path:
        places = [Path(p) for p in (self.resume_from, args.resume_from_checkpoint) if isinstance(p, str | Path)]
        for folder in [*places, _folder(args, step)]:
            if (folder / STATE).exists():
                return folder / STATE
        raise InputError(
            f"training resumes at step {step:,}, and there is no {STATE} in {_folder(args, step)}: pass the "
            "checkpoint's folder as resume_from=, or start again from step 0 if it was made without PaceCallback"
        )


def _folder(args: Any, step: int) -> Path:
    return Path(args.output_dir) / f"checkpoint-{step}"
