"""Running one fork: the interface of a training, and the training for torch models.

Recorded trainings are imported only when they are used, since most studies run without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paceline.training.averaging import AVERAGE_SHARE, WeightAverage, newest_weight
from paceline.training.batch_groups import BatchGroups
from paceline.training.checkpoint import (
    load_checkpoint,
    pack_checkpoint,
    require_checkpoint,
    save_checkpoint,
    unpack_checkpoint,
    write_checkpoint,
)
from paceline.training.device_batches import DeviceBatches
from paceline.training.observation_plan import EVALUATE_SHARE
from paceline.training.protocol import (
    Evaluating,
    ExpectedTime,
    Observation,
    Reseedable,
    StepTimes,
    Timed,
    Training,
    values_by_weights,
)
from paceline.training.randomness import Randomness, get_random_state, preserve_random_state, set_random_state
from paceline.training.rates import rate_ratios, set_rates
from paceline.training.single_process import check_single_process
from paceline.training.state_copy import copy_state, same_states
from paceline.training.state_layout import ArrayLike
from paceline.training.torch_training import TorchTraining

if TYPE_CHECKING:
    from paceline.training.recordable import NotRecordableError as NotRecordableError
    from paceline.training.recordable import check_recordable as check_recordable
    from paceline.training.recorded_training import RecordedTraining as RecordedTraining
    from paceline.training.work_stream import CudaWorkStream as CudaWorkStream
    from paceline.training.work_stream import WorkStream as WorkStream

_LAZY = {
    "CudaWorkStream": "work_stream",
    "NotRecordableError": "recordable",
    "RecordedTraining": "recorded_training",
    "WorkStream": "work_stream",
    "check_recordable": "recordable",
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_LAZY,
    "AVERAGE_SHARE",
    "EVALUATE_SHARE",
    "ArrayLike",
    "BatchGroups",
    "DeviceBatches",
    "Evaluating",
    "ExpectedTime",
    "Observation",
    "Randomness",
    "Reseedable",
    "StepTimes",
    "Timed",
    "TorchTraining",
    "Training",
    "WeightAverage",
    "check_single_process",
    "copy_state",
    "get_random_state",
    "load_checkpoint",
    "newest_weight",
    "pack_checkpoint",
    "preserve_random_state",
    "rate_ratios",
    "require_checkpoint",
    "same_states",
    "save_checkpoint",
    "set_random_state",
    "set_rates",
    "unpack_checkpoint",
    "values_by_weights",
    "write_checkpoint",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'paceline.training' has no attribute {name!r}")
    return getattr(import_module(f"paceline.training.{_LAZY[name]}"), name)
