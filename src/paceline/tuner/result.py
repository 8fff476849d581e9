"""What a study found, or what to do where it found nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from paceline.errors import InputError
from paceline.strategy import Fork, History
from paceline.study import Study
from paceline.traces import Schedule
from paceline.training import load_checkpoint

LOOKED_AT = 10_000  # steps of a schedule, to find its peak


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """What a study found.

    Args:
        schedule: the learning rate of the best fork, from step 0 to the end.
        value: its value at its best moment if the best weights were kept, else at the end; in the user's units, None
            where every fork failed. Where a training has no `evaluate` this is a loss of its last few batches, more
            often below that of all data than above.
        fork: its number.
        value_of: which weights the value is of, "raw" or "averaged", whichever ended better.
        history: everything that was observed.
        advice: what to do where there is no result, or one that makes no sense.
        state: the best fork's last checkpoint, or its content.
        seconds: wall seconds of this process: "training", "evaluation", "loading" (of batches), "measure" (a few steps
            before the start), "decide" (the strategy), "journal" (waiting for the disk) and "checkpoint" (saving and
            loading). A training of your own has its evaluations and its loading under "training".
        study: everything that happened, as it would be read from its folder; `study.plot` draws it.
        step: updates done at the moment that `value` and `weights()` are of.
        last: the value at the end of the best fork; `value` itself if the best weights were not kept.
    """

    schedule: Schedule | None
    value: float | None
    fork: int | None
    value_of: str
    history: History
    advice: str = ""
    state: "Path | dict[str, Any] | None" = None
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    study: Study | None = None
    step: int | None = None
    last: float | None = None

    def __repr__(self) -> str:
        """One line: all that was observed would fill a screen a hundred times."""
        if self.fork is None or self.schedule is None:
            return f"Result(no fork reached the end: {self.advice})"
        return (
            f"Result(value={self.value:.6g}, value_of={self.value_of!r}, fork={self.fork}, step={self.step}, "
            f"steps={self.schedule.steps})"
        )

    def __str__(self) -> str:
        """What was found, in a few lines."""
        if self.fork is None or self.schedule is None:
            return f"no fork reached the end: {self.advice}"
        return "\n".join(self._lines(self.schedule))

    def _lines(self, schedule: Schedule) -> Iterator[str]:
        end = "" if self.last in (None, self.value) else f"; {self.last:.6g} at its end"
        step = f" at step {self.step:,} of {schedule.steps:,}" if self.step is not None else ""
        yield f"value  {self.value:.6g}{step} ({self.value_of} weights){end}"
        steps = np.unique(np.linspace(0, schedule.steps - 1, LOOKED_AT).astype(int))
        peak, base = float(schedule(steps).max()), schedule.tuned_base
        shape = "" if base is None else f", times a {base.name.replace('_', '-')} base"
        yield f"rate   {peak:.4g} at its peak{shape} (fork {self.fork})"
        if isinstance(self.state, Path):
            yield f"study  {self.state.parent.parent}"
        elif self.state is None:
            yield "state  with your own training: this study was run by ask and tell"
        else:
            yield "study  not kept: pass study= to keep one, weights() has the weights"
        if self.advice:
            yield f"advice {self.advice}"

    def plot(self, *, dark: bool = False) -> Any:
        """A plotly figure of all forks, values above and rates below; other figures are in `study.plot`."""
        if self.study is None:
            raise InputError("this result has no study: open the folder with Study.open(path) and call its plot()")
        return self.study.plot(dark=dark)

    def weights(self) -> dict[str, Any]:
        """State dict of the best fork's model, raw or averaged as `value_of` says."""
        if self.state is None:
            raise InputError("this study was run by ask and tell: take the weights from your own training")
        state = load_checkpoint(self.state) if isinstance(self.state, Path) else self.state
        if self.value_of == "averaged" and state.get("average"):
            prefix = "module."
            found = {k.removeprefix(prefix): v for k, v in state["average"].items() if k.startswith(prefix)}
        else:
            found: dict[str, Any] = state.get("model", state)
        return {k: v.clone() if isinstance(v, Tensor) else v for k, v in found.items()}  # of a whole state, a part


def remark(best: Fork) -> str:
    """Advice where even the best fork did not improve; nothing where it did."""
    if best.trace is None:
        return ""
    first, last = best.trace.path()[1][[0, -1]]
    if first == last:
        return "the value never changed: check that it depends on the weights that are trained"
    if best.trace.objective.sign * (last - first) < 0:
        return 'the value got worse at every rate: check mode ("min" or "max"), or lower the bounds of the rate'
    return ""
