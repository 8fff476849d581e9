"""The rate inside a trial: how the trainable gets it, and how a checkpoint is kept from undoing it.

Ray gives a trial its new configuration first and loads the parent's checkpoint afterwards. A trainable whose checkpoint
holds its optimiser's state gets the parent's rate back with it, and trains on at that (ray issues 62173 and 36660). So
trainable classes are registered again with one addition: before every iteration, and after `load_checkpoint`, the rate
is written into each torch optimiser that the trainable has.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np
from ray.tune import Trainable
from ray.tune.trainable import FunctionTrainable
from torch.optim import Optimizer

from paceline.errors import InputError, TrainingError
from paceline.shapes import Recorded
from paceline.traces import Schedule
from paceline.training import rate_ratios, set_rates

SCHEDULE_KEY = "paceline_schedule"  # of the configuration: the schedule as JSON, if the rate changes at every step
HOLD_SHARE = 0.3  # of the run, before the decay begins, as in `horizon`


def rate(config: Mapping[str, Any], step: int) -> float:
    """The rate of iteration `step`, counted from 0, if it changes at every one (`stairs=0`)."""
    if SCHEDULE_KEY not in config:
        raise InputError(
            f"expected {SCHEDULE_KEY!r} in the configuration, got {sorted(config)}: pass stairs=0 to "
            "PacelineScheduler, or use the rate of the configuration as it is"
        )
    data = config[SCHEDULE_KEY]
    return float(Schedule.from_json(json.loads(data) if isinstance(data, str) else data)(step))


def set_rate(optimizer: Optimizer, lr: float) -> None:
    """Write a rate into an optimiser, after a checkpoint has been loaded. Its groups keep their ratios."""
    set_rates(optimizer, lr * rate_ratios(optimizer))


def staircase(steps: int, stairs: int) -> Recorded:
    """A shape that holds, then falls to zero in so many stairs, each at the mean of a straight line over it."""
    edges = np.unique(np.concatenate([[0], np.linspace(HOLD_SHARE * steps, steps, stairs + 1).round()])).astype(int)
    at, factors = list[int](), list[float]()
    for begin, end in pairwise(int(edge) for edge in edges):
        middles = (np.arange(begin, end) + 0.5) / steps
        mean = float(np.mean(np.clip((1.0 - middles) / (1.0 - HOLD_SHARE), 0.0, 1.0)))
        for step in sorted({begin, end - 1}):
            at.append(step)
            factors.append(mean)
    return Recorded(tuple(at), tuple(factors))


class RateKeeper(Trainable):
    """What is added to a trainable class: its torch optimisers train at the rate that was decided."""

    rate_key: ClassVar[str] = "lr"
    needs_optimizer: ClassVar[bool] = False  # whether a trainable without torch optimisers is an error

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Set up again if the class itself cannot take another configuration, so that actors can be reused."""
        if not super().reset_config(new_config):  # pyright: ignore[reportUnknownMemberType]
            self.setup(new_config)  # pyright: ignore[reportUnknownMemberType]
        return True

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Load the state, and write the rate after it."""
        super().load_checkpoint(checkpoint)  # pyright: ignore[reportUnknownMemberType]
        self._write_rate()

    def step(self) -> dict[str, Any]:
        """One iteration, at the rate that was decided."""
        self._write_rate()
        return super().step()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _write_rate(self) -> None:
        attributes = vars(self)
        config: dict[str, Any] = attributes["config"]
        lr = rate(config, int(self.iteration)) if SCHEDULE_KEY in config else float(config[self.rate_key])
        optimizers = list(_optimizers(attributes.values()))
        for optimizer in optimizers:
            set_rate(optimizer, lr)
        if self.needs_optimizer and not optimizers:
            raise TrainingError(
                f"{type(self).__name__} has no torch optimiser to write the rate into: pass stairs=10 to "
                "PacelineScheduler, which puts each rate into the configuration, or stairs=0, and use "
                "rate(config, step)"
            )


def with_rate_kept(trainable: type[Trainable], key: str, needs_optimizer: bool) -> type[Trainable]:
    """The trainable class with its rate kept. A function stays as it is, because it loads checkpoints itself."""
    if issubclass(trainable, FunctionTrainable | RateKeeper):
        return trainable
    attributes = {"rate_key": key, "needs_optimizer": needs_optimizer, "__doc__": trainable.__doc__}
    return type(trainable.__name__, (RateKeeper, trainable), attributes)


def _optimizers(values: Iterable[Any], depth: int = 2) -> Iterable[Optimizer]:
    """Torch optimisers among these values, and in lists and dicts of them."""
    for value in values:
        if isinstance(value, Optimizer):
            yield value
        elif depth and isinstance(value, dict):
            yield from _optimizers(cast("dict[Any, Any]", value).values(), depth - 1)
        elif depth and isinstance(value, list | tuple):
            yield from _optimizers(cast("list[Any]", value), depth - 1)
