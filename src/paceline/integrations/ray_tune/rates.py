"""The rate inside a trial: what the configuration says, and how a checkpoint is kept from undoing it.

Ray gives a trial its new configuration first and restores the parent's checkpoint afterwards. A trainable that keeps
its optimiser's state in the checkpoint thereby gets the parent's rate back, and trains on at that (ray issues 62173 and
36660). Trainable classes are therefore registered anew with one addition: before every iteration, and after
`load_checkpoint`, the rate is written into each torch optimiser that the trainable holds.
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

SCHEDULE = "paceline_schedule"  # in the configuration, as JSON text, where the rate changes at every step
HOLD = 0.3  # of the run, before the decay begins, as in `horizon`


def rate(config: Mapping[str, Any], step: int) -> float:
    """The rate of iteration `step`, counted from 0, where it changes at every one (`stairs=0`)."""
    if SCHEDULE not in config:
        raise InputError(
            f"expected {SCHEDULE!r} in the configuration, got {sorted(config)}: pass stairs=0 to PacelineScheduler, or "
            "use the rate of the configuration as it is"
        )
    written = config[SCHEDULE]
    return float(Schedule.from_json(json.loads(written) if isinstance(written, str) else written)(step))


def set_rate(optimizer: Optimizer, lr: float) -> None:
    """Write a rate into an optimiser; its groups keep their ratios. For use after a checkpoint has been loaded."""
    set_rates(optimizer, lr * rate_ratios(optimizer))


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
    """What is added to a trainable class: its torch optimisers run at the rate that was decided."""

    rate_key: ClassVar[str] = "lr"
    must_hold: ClassVar[bool] = False  # whether a trainable without torch optimisers is a mistake

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Set up anew where the class itself cannot take another configuration, so that actors can be reused."""
        if not super().reset_config(new_config):  # pyright: ignore[reportUnknownMemberType]
            self.setup(new_config)  # pyright: ignore[reportUnknownMemberType]
        return True

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Restore the state, and the rate again after it."""
        super().load_checkpoint(checkpoint)  # pyright: ignore[reportUnknownMemberType]
        self._write_rate()

    def step(self) -> dict[str, Any]:
        """One iteration, at its rate."""
        self._write_rate()
        return super().step()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def _write_rate(self) -> None:
        held = vars(self)
        config: dict[str, Any] = held["config"]
        lr = rate(config, int(self.iteration)) if SCHEDULE in config else float(config[self.rate_key])
        optimizers = list(_optimizers(held.values()))
        for optimizer in optimizers:
            set_rate(optimizer, lr)
        if self.must_hold and not optimizers:
            raise TrainingError(
                f"{type(self).__name__} holds no torch optimiser to write the rate into: pass stairs=10 to "
                "PacelineScheduler to be given each rate in the configuration, or stairs=0 and use rate(config, step)"
            )


def rated(trainable: type[Trainable], key: str, must_hold: bool) -> type[Trainable]:
    """The trainable class, with its rate kept; a function is left as it is, since it loads checkpoints itself."""
    if issubclass(trainable, FunctionTrainable | KeepsRate):
        return trainable
    more = {"rate_key": key, "must_hold": must_hold, "__doc__": trainable.__doc__}
    return type(trainable.__name__, (KeepsRate, trainable), more)


def _optimizers(values: Iterable[Any], depth: int = 2) -> Iterable[Optimizer]:
    """Torch optimisers among these values, and in lists and dicts of them."""
    for value in values:
        if isinstance(value, Optimizer):
            yield value
        elif depth and isinstance(value, dict):
            yield from _optimizers(cast("dict[Any, Any]", value).values(), depth - 1)
        elif depth and isinstance(value, list | tuple):
            yield from _optimizers(cast("list[Any]", value), depth - 1)
