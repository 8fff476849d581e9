"""Set a LightningModule up for forks, with a Trainer that never runs. What a fork cannot have is refused."""

# lightning leaves many of its types open
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import logging
from collections.abc import Iterable
from typing import Any

from lightning.pytorch import LightningDataModule, LightningModule, Trainer
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch.optim import Optimizer

from paceline.errors import InputError

TRAINER_SETTINGS = (
    "accelerator",
    "precision",
    "accumulate_grad_batches",
    "gradient_clip_val",
    "gradient_clip_algorithm",
    "limit_val_batches",
    "deterministic",
    "benchmark",
)
IDLE_SETTINGS: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "devices": 1,
    "max_epochs": -1,
}


def idle_trainer(settings: dict[str, Any]) -> Trainer:
    """A Trainer of which only the strategy and the precision plugin are used. It prints nothing."""
    logger = logging.getLogger("lightning.pytorch.utilities.rank_zero")
    level = logger.level
    logger.setLevel(logging.ERROR)  # it would list the GPUs of this machine
    try:
        return Trainer(**settings, **IDLE_SETTINGS)
    finally:
        logger.setLevel(level)


def connect_module(trainer: Trainer, module: LightningModule, data: Any) -> Optimizer:
    """Let the trainer's strategy place the module and make its optimiser, as in `fit`."""
    if not isinstance(module, LightningModule):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"make_module must return a LightningModule of lightning.pytorch, got {type(module).__name__}")
    strategy = trainer.strategy
    if not isinstance(strategy, SingleDeviceStrategy):
        raise InputError(
            f"a fork runs on one device, got {type(strategy).__name__}: omit strategy and devices; "
            "runner='ray' puts forks on several devices"
        )
    trainer.state.fn, trainer.training = TrainerFn.FITTING, True
    trainer.datamodule = data if isinstance(data, LightningDataModule) else None  # pyright: ignore
    module.trainer = trainer
    strategy.connect(module)
    strategy.setup_environment()
    for part in _hook_owners(module, data):
        part.trainer = trainer
        part.prepare_data()
        part.setup("fit")
    module.configure_model()
    strategy.setup(trainer)
    return only_optimizer(trainer, module)


def _hook_owners(module: LightningModule, data: Any) -> list[Any]:
    """The objects with hooks on data, in the order of their calls."""
    return [data, module] if isinstance(data, LightningDataModule) else [module]


class BatchTransfer:
    """Moves batches to the device of the module, with the hooks of the data module or of the module.

    Args:
        trainer: the trainer with the device.
        module: the module.
        data: a data module, whose hooks come first; or anything else.
    """

    def __init__(self, trainer: Trainer, module: LightningModule, data: Any) -> None:
        self._device, self._hooks = trainer.strategy.root_device, dict[str, Any]()
        for name in ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer"):
            owner = next((part for part in _hook_owners(module, data) if is_overridden(name, part)), module)
            self._hooks[name] = getattr(owner, name)

    def __call__(self, batch: Any) -> Any:
        """The batch, on its device."""
        batch = self._hooks["on_before_batch_transfer"](batch, 0)
        batch = self._hooks["transfer_batch_to_device"](batch, self._device, 0)
        return self._hooks["on_after_batch_transfer"](batch, 0)


def only_optimizer(trainer: Trainer, module: LightningModule) -> Optimizer:
    """The only optimiser of the module. Several, and schedulers, are errors."""
    if not module.automatic_optimization:
        raise InputError(
            "expected a module with automatic optimisation, got automatic_optimization=False: with optimiser steps of "
            "your own use paceline.PaceLR in training_step, or a paceline.TorchTraining with step="
        )
    optimizers = [optimizer for optimizer in trainer.optimizers if optimizer.param_groups]
    if len(optimizers) != 1:
        raise InputError(
            f"configure_optimizers must return one optimiser, got {len(optimizers)}: return one over all parameters, "
            "with a group for each rate"
        )
    if trainer.lr_scheduler_configs:
        name = type(trainer.lr_scheduler_configs[0].scheduler).__name__
        raise InputError(
            f"configure_optimizers returned a scheduler ({name}), and two cannot set one rate: return the optimiser "
            "alone"
        )
    return optimizers[0]


def choose_loaders(module: LightningModule, data: Any) -> tuple[Iterable[Any], "Iterable[Any] | None"]:
    """The loaders of training and of validation."""
    if isinstance(data, tuple | list) and len(data) in (1, 2):
        return data[0], (data[1] if len(data) == 2 else None)
    if data is not None and not isinstance(data, LightningDataModule):
        return data, None
    source = module if data is None else data
    if not is_overridden("train_dataloader", source):
        raise InputError(
            f"{type(source).__name__} has no train_dataloader: pass make_data, which returns a LightningDataModule, a "
            "DataLoader or a pair of them"
        )
    held_out = source.val_dataloader() if is_overridden("val_dataloader", source) else None
    if isinstance(held_out, list | tuple):
        if len(held_out) > 1:
            raise InputError(f"val_dataloader must return one loader, got {len(held_out)}: forks are judged by one set")
        held_out = held_out[0] if held_out else None
    return source.train_dataloader(), held_out
