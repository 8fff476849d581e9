"""What prevents a recording is found before it is tried, with the reason."""

import pytest
import torch

from paceline.errors import TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.training import NotRecordableError, TorchTraining, check_recordable
from paceline.training.recordable import recording
from tests.training.example_trainings import device_digits, small_network


class OwnState(TorchTraining):
    def load_state_dict(self, state) -> None:
        super().load_state_dict(state)


def with_own_state() -> TorchTraining:
    training = device_digits()
    training.__class__ = OwnState
    return training


def with_scaler() -> TorchTraining:
    return device_digits(scaler=torch.amp.GradScaler("cpu"))


def on_two_devices() -> TorchTraining:
    training = device_digits()
    training.model.to("meta")
    return training


def test_a_torch_training_with_device_batches_can_be_recorded() -> None:
    training = device_digits()
    assert check_recordable(training) == (training, training.batches.source)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: QuadraticTraining(Quadratic()), "the training is a QuadraticTraining: only the steps of a Torch"),
        (with_own_state, "OwnState has its own advance or load_state_dict"),
        (small_network, "its batches come from the host, from a DataLoader: put the data on the device"),
        (on_two_devices, "model and data must be on one device, got cpu, meta"),
        (with_scaler, "a gradient scaler decides on the host whether to take a step: use bf16"),
    ],
)
def test_what_cannot_be_recorded_says_why(make, reason: str) -> None:
    with pytest.raises(NotRecordableError, match=reason):
        check_recordable(make())


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (ValueError("a bad batch\nmore"), NotRecordableError, r"the step cannot be recorded \(ValueError: a bad batch"),
        (RuntimeError("CUDA error: out of memory"), torch.OutOfMemoryError, "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError, "CUDA out of memory"),
        (TrainingError("batches is empty"), TrainingError, "^batches is empty$"),
    ],
)
def test_errors_of_a_recording_keep_their_meaning(error: Exception, expected: type, message: str) -> None:
    with pytest.raises(expected, match=message), recording("the step"):
        raise error
