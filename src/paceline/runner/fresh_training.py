"""Whether a factory builds something new at each call. Trainings that share weights train each other's runs."""

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from paceline.errors import TrainingError
from paceline.training import Training

ADVICE = "build model, optimiser and training inside the function, so that each call makes new ones"
_left_trained: "WeakKeyDictionary[nn.Module, list[int]]" = WeakKeyDictionary()


def refuse_shared_weights(training: Training, others: Iterable[Training]) -> None:
    """Refuse a training that changes the weights of another one of the study."""
    for other in others:
        if training is other:
            raise TrainingError(f"the training factory returned the same training at two calls: {ADVICE}")
        mine, theirs = _weights(training), _weights(other)  # both are alive, so equal addresses are the same memory
        if _addresses(mine) & _addresses(theirs):
            raise TrainingError(f"the training factory returned the same model at two calls: {ADVICE}")


def refuse_trained(training: Any) -> None:
    """Refuse a training that is to be a new run, and has been trained already."""
    done = getattr(training, "steps_done", 0)
    if isinstance(done, int) and done > 0:
        raise TrainingError(f"the training factory returned a training that has done {done:,} steps already: {ADVICE}")
    model = getattr(training, "model", None)
    if isinstance(model, nn.Module) and _left_trained.get(model) == _versions(model):
        raise TrainingError(
            "the training factory returned a model as an earlier study of this process has left it, trained: "
            f"{ADVICE}, or load the weights to begin with"
        )


def note_trained(training: Any) -> None:
    """Note that a study is over, and how it leaves the model of its training."""
    model = getattr(training, "model", None)
    if isinstance(model, nn.Module) and getattr(training, "steps_done", 0):
        _left_trained[model] = _versions(model)


def _versions(model: nn.Module) -> list[int]:
    """How often each parameter was changed: the same numbers mean that nothing has changed since."""
    return [parameter._version for parameter in model.parameters()]


def _weights(training: Any) -> list[Tensor]:
    """The tensors that a training changes: those of its optimiser, or else of its state."""
    groups = getattr(getattr(training, "optimizer", None), "param_groups", None)
    if groups is not None:
        return [parameter for group in groups for parameter in group["params"] if parameter.requires_grad]
    return [tensor for tensor in _tensors(training.state_dict()) if tensor.is_floating_point()]


def _tensors(state: Any) -> list[Tensor]:
    if isinstance(state, Tensor):
        return [state]
    values: Any = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()  # pyright: ignore[reportUnknownVariableType]
    return [tensor for value in values for tensor in _tensors(value)]


def _addresses(tensors: list[Tensor]) -> set[int]:
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}
