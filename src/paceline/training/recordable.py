"""Which trainings can be recorded, and the error for those that cannot."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

from paceline.errors import PacelineError
from paceline.training.device_batches import DeviceBatches
from paceline.training.torch_training import TorchTraining


class NotRecordableError(PacelineError):
    """A step cannot be recorded and replayed; the message says why."""


def check_recordable(training: Any) -> tuple[TorchTraining, DeviceBatches]:
    """The training and its data, or an error with what is known to prevent a recording before it is tried."""
    if not isinstance(training, TorchTraining):
        raise NotRecordableError(
            f"the training is a {type(training).__name__}: only the steps of a TorchTraining can be recorded"
        )
    kind = type(training)
    if kind.advance is not TorchTraining.advance or kind.load_state_dict is not TorchTraining.load_state_dict:
        raise NotRecordableError(f"{kind.__name__} has its own advance or load_state_dict, which would not be called")
    batches = training.batches.source
    if not isinstance(batches, DeviceBatches):
        raise NotRecordableError(
            f"its batches come from the host, from a {type(batches).__name__}: put the data on the device, and draw "
            "from it with paceline.training.DeviceBatches"
        )
    devices = {p.device for p in training.model.parameters()} | {batches.device}
    if len(devices) > 1:
        given = ", ".join(sorted(map(str, devices)))
        raise NotRecordableError(f"model and data must be on one device, got {given}")
    if training.scaler is not None:
        raise NotRecordableError(
            "a gradient scaler decides on the host whether to take a step: use bf16, which needs none"
        )
    return training, batches


@contextmanager
def recording(what: str) -> Generator[None]:
    """Turn errors inside the block into `NotRecordableError`, except running out of memory."""
    try:
        yield
    except (PacelineError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if "out of memory" in str(error):
            raise torch.OutOfMemoryError(str(error)) from error
        first = next(iter(str(error).splitlines()), "")
        raise NotRecordableError(f"{what} cannot be recorded ({type(error).__name__}: {first})") from error
