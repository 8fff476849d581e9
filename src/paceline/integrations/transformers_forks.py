"""A Hugging Face Trainer as a training that can be forked.

The Trainer never runs its own loop. Its methods make the batches, the optimiser, the loss with its gradients, and the
metrics. A fork under a schedule ends with the weights that `Trainer.train` would have made on the same batches.
"""

# transformers leaves many of its types open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

import torch
from accelerate.data_loader import DataLoaderShard, skip_first_batches  # pyright: ignore[reportMissingTypeStubs]
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import IterableDataset
from transformers import Trainer
from transformers.trainer_callback import DefaultFlowCallback

from paceline.errors import InputError, TrainingError
from paceline.training import AVERAGE_SHARE, EVALUATE_SHARE, BatchGroups, TorchTraining, preserve_random_state


def trainer_training(
    make_trainer: Callable[[], Trainer],
    *,
    monitor: str = "eval_loss",
    every: int | str | None = None,
    evaluate_share: float = EVALUATE_SHARE,
    average: float | None = AVERAGE_SHARE,
) -> "Callable[[], TrainerTraining]":
    """A factory of trainings for `tune`, from a function that makes a Trainer.

    Args:
        make_trainer: builds the Trainer, with its model, arguments and data.
        monitor: the metric that forks are compared by, as `Trainer.evaluate` names it. Without an eval_dataset it is
            the training loss.
        every: steps between observations, or epochs: `every="1 epoch"`. By default as many as `evaluate_share` allows,
            up to about 40 a run.
        evaluate_share: share of the time that evaluations may take, as in `TorchTraining`.
        average: share of the steps so far that the average of the weights covers; None switches it off.
    """
    if not callable(make_trainer):
        raise InputError(
            f"make_trainer must be a function without arguments, got a {type(make_trainer).__name__}: pass "
            "`make` and not `make()`, since each fork has a Trainer of its own"
        )
    return partial(_build, make_trainer, monitor, every, evaluate_share, average)


def _build(
    make_trainer: Callable[[], Trainer], monitor: str, every: int | str | None, share: float, average: float | None
) -> "TrainerTraining":
    with preserve_random_state():  # a Trainer sets the global seeds
        return TrainerTraining(make_trainer(), monitor=monitor, every=every, evaluate_share=share, average=average)


class TrainerTraining(TorchTraining):
    """One run of a Trainer's model, which calls the Trainer's methods.

    These are called, also if you override them: get_train_dataloader, create_optimizer, get_batch_samples,
    training_step (and with it compute_loss) and evaluate. Gradients are accumulated and clipped as its arguments say.
    Its callbacks are removed, its scheduler is never made, and nothing is logged or saved.

    Args:
        trainer: the Trainer, for one device.
        monitor: the metric that forks are compared by, if there is an eval_dataset.
        every: steps between observations, or epochs.
        evaluate_share: share of the time that evaluations may take.
        average: share of the steps so far that the average of the weights covers.
    """

    def __init__(
        self,
        trainer: Trainer,
        *,
        monitor: str = "eval_loss",
        every: int | str | None = None,
        evaluate_share: float = EVALUATE_SHARE,
        average: float | None = AVERAGE_SHARE,
    ) -> None:
        if not isinstance(trainer, Trainer):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"make_trainer must return a transformers.Trainer, got {type(trainer).__name__}")
        check_single_device(trainer.args, "a fork")
        if trainer.lr_scheduler is not None:
            raise InputError("the Trainer was given a scheduler, and two cannot set one rate: pass (optimizer, None)")
        for callback in list(trainer.callback_handler.callbacks):
            if not isinstance(callback, DefaultFlowCallback):
                trainer.remove_callback(callback)
        self.trainer, self.monitor = trainer, monitor
        model: Any = trainer.model
        super().__init__(
            model,
            trainer.create_optimizer(),
            batches=BatchGroups(
                _ShuffledLoader(trainer.get_train_dataloader()), trainer.args.gradient_accumulation_steps
            ),
            loss=self._loss,
            evaluate=self._evaluate if trainer.eval_dataset is not None else None,
            step=self._step,
            every=every,
            evaluate_share=evaluate_share,
            average=average,
        )
        # after the average was copied from it: accelerate puts its own forward into the model, for mixed precision
        self._prepared: Any = trainer.accelerator.prepare(model)

    def _step(self, model: nn.Module, optimizer: Optimizer, batches: list[Any]) -> Tensor:
        """One update, with gradients accumulated over these batches. Returns their mean loss."""
        trainer = self.trainer
        trainer.state.global_step = self.steps_done
        batches, items = trainer.get_batch_samples(iter(batches), len(batches), trainer.args.device)
        trainer.current_gradient_accumulation_steps = len(batches)  # pyright: ignore[reportAttributeAccessIssue]
        optimizer.zero_grad()
        losses = [trainer.training_step(self._prepared, batch, items) for batch in batches]
        if trainer.args.max_grad_norm:
            trainer.accelerator.clip_grad_norm_(model.parameters(), trainer.args.max_grad_norm)
        optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        return torch.stack(losses).sum()  # each is divided already

    def _loss(self, model: nn.Module, batches: list[Any]) -> Tensor:
        """The mean loss of the averaged weights, if there is no eval_dataset."""
        assert self.average is not None
        trainer = self.trainer
        with self.average.swap_into(self.model), preserve_random_state(), trainer.compute_loss_context_manager():
            self.model.eval()
            inputs = [trainer._prepare_inputs(batch) for batch in batches]  # pyright: ignore[reportPrivateUsage]
            return torch.stack([trainer.compute_loss(self._prepared, batch) for batch in inputs]).mean()  # pyright: ignore

    def _evaluate(self, model: nn.Module) -> float:
        if model is self.model:
            return self._metric()
        assert self.average is not None
        with self.average.swap_into(self.model):
            return self._metric()

    def _metric(self) -> float:
        metrics = self.trainer.evaluate()
        self.trainer.state.log_history.clear()  # hundreds of evaluations would pile up there
        if self.monitor not in metrics:
            raise TrainingError(f"monitor={self.monitor!r} is not what evaluate gives: it gives {', '.join(metrics)}")
        return float(metrics[self.monitor])


def check_single_device(args: Any, who: str) -> None:
    """Refuse settings with which losses and gradients cannot be read."""
    if args.world_size > 1 or args.n_gpu > 1:
        count = max(args.world_size, args.n_gpu)
        raise InputError(
            f"{who} needs a single device, got {count}: run one process and let it see one GPU "
            "(CUDA_VISIBLE_DEVICES=0); runner='ray' puts forks on several"
        )
    if args.fp16:
        raise InputError(f"{who} cannot read gradients that fp16 has scaled: pass bf16=True, or neither")


class _ShuffledLoader:
    """A loader whose order comes from the fork's own random numbers. Accelerate seeds samplers by epoch."""

    def __init__(self, loader: Iterable[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        self._set_epoch()
        return iter(self._loader)

    def __len__(self) -> int:
        loader: Any = self._loader
        return len(loader)

    @property
    def can_enter(self) -> bool:
        """Whether the data set is map-style, and so epochs can be entered in the middle."""
        return isinstance(self._loader, DataLoaderShard) and not isinstance(self._loader.dataset, IterableDataset)

    @property
    def draws_ahead(self) -> bool:
        """Whether batches are drawn before they are asked for: Accelerate's loaders are one batch ahead."""
        return True

    def epoch(self, position: int = 0) -> Iterator[Any] | None:
        """The batches of an epoch from a position on; None if the data set is not map-style."""
        if not self.can_enter:
            return None
        self._set_epoch()
        batches = iter(skip_first_batches(self._loader, position))
        first = list(islice(batches, 1))  # the loader begins when it is first asked, and that draws random numbers
        return chain(first, batches)

    def _set_epoch(self) -> None:
        set_epoch: Any = getattr(self._loader, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(int(torch.randint(2**31, ())))
