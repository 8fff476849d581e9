"""The rate inside a trial: what the configuration says, and how a checkpoint is kept from undoing it.

Ray gives a trial its new configuration first and restores the parent's checkpoint afterwards. A trainable that keeps
its optimiser's state in the checkpoint thereby gets the parent's rate back, and trains on at that (ray issues 62173 and
36660). Trainable classes are therefore registered anew with one addition: after `load_checkpoint` the rate is written
into every torch optimiser that the trainable holds.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
from ray.tune import Trainable
from ray.tune.trainable import FunctionTrainable
from torch.optim import Optimizer

from paceline.errors import InputError
from paceline.traces import Schedule
from paceline.traces.shapes import Recorded
from paceline.training.rates import ratios_of, set_rates

SCHEDULE = "paceline_schedule"  # in the configuration, where the rate changes at every step
HOLD = 0.3  # of the run, before the decay begins, as in `horizon`


def rate(config: Mapping[str, Any], step: int) -> float:
    """The rate of iteration `step`, counted from 0, for a scheduler with `stairs=0`."""
    if SCHEDULE not in config:
        raise InputError(
            f"expected {SCHEDULE!r} in the configuration, got {sorted(config)}: pass stairs=0 to PacelineScheduler, or "
            "use the rate of the configuration as it is"
        )
    return float(Schedule.from_json(config[SCHEDULE])(step))


def set_rate(optimizer: Optimizer, lr: float) -> None:
    """Write a rate into an optimiser; its groups keep their ratios. For use after a checkpoint has been loaded."""
    set_rates(optimizer, lr * ratios_of(optimizer))


def staircase(steps: int, stairs: int) -> Recorded:
    """Hold, then a straight decay to zero in so many stairs, each at the mean of the line over it."""
    edges = np.unique(np.concatenate([[0], np.linspace(HOLD * steps, steps, stairs + 1).round()])).astype(int)
    at, factors = list[int](), list[float]()
    for begin, end in pairwise(int(edge) for edge in edges):
        middles = (np.arange(begin, end) + 0.5) / steps
        mean = float(np.mean(np.clip((1.0 - middles) / (1.0 - HOLD), 0.0, 1.0)))
        for step in sorted({begin, end - 1}):
            at.append(step)
            factors.append(mean)
    return Recorded(tuple(at), tuple(factors))


class KeepsRate(Trainable):
    """What is added to a trainable class: the rate stays as the configuration says when a checkpoint is restored."""

    rate_key: ClassVar[str] = "lr"

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Set up anew where the class itself cannot take another configuration, so that actors can be reused."""
        if not super().reset_config(new_config):  # pyright: ignore[reportUnknownMemberType]
            self.setup(new_config)  # pyright: ignore[reportUnknownMemberType]
        return True

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Restore the state, and the rate again after it."""
        super().load_checkpoint(checkpoint)  # pyright: ignore[reportUnknownMemberType]
        held = vars(self)
        for optimizer in _optimizers(held.values()):
            set_rate(optimizer, float(held["config"][self.rate_key]))


def rated(trainable: type[Trainable], key: str) -> type[Trainable]:
    """The trainable class, with its rate kept; a function is left as it is, since it loads checkpoints itself."""
    if issubclass(trainable, FunctionTrainable | KeepsRate):
        return trainable
    return type(trainable.__name__, (KeepsRate, trainable), {"rate_key": key, "__doc__": trainable.__doc__})


def _optimizers(values: Iterable[Any], depth: int = 2) -> Iterable[Optimizer]:
    """Torch optimisers among these values, and in lists and dicts of them."""
    for value in values:
        if isinstance(value, Optimizer):
            yield value
        elif depth and isinstance(value, dict):
            yield from _optimizers(cast("dict[Any, Any]", value).values(), depth - 1)
        elif depth and isinstance(value, list | tuple):
            yield from _optimizers(cast("list[Any]", value), depth - 1)
