"""The best observation of an interval: a copy of its state is taken as it comes, and written when the interval ends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.study import Checkpoints, Failure, Interval, KeepRule
from paceline.training import Evaluating, Training, save_checkpoint


class BestOfInterval:
    """The best observation of an interval, with a copy of its state, if it beats all before it on its path.

    Args:
        interval: what is trained.
        rule: what an observation has to beat; None keeps nothing.
    """

    def __init__(self, interval: Interval, rule: KeepRule | None) -> None:
        self.interval, self.rule = interval, rule
        self._step: int | None = None
        self._state: dict[str, Any] | None = None
        self._is_end_best = False

    def offer(self, step: int, values: Mapping[str, float], copy: Callable[[], dict[str, Any]]) -> None:
        """Keep what `copy` returns if the observation is better. The states of both ends are kept anyway."""
        if self.rule is None or not self.rule.is_beaten_by(values):
            return
        self.rule = replace(self.rule, to_beat=self.rule.best_of(values)[1])
        self._is_end_best = step == self.interval.stop
        if self._is_end_best:  # the copy before is needed if the end cannot be saved
            return
        self._step, self._state = None, None  # frees the copy before
        if step > 0:
            self._state = copy()
        self._step = step

    def turn(self, steps: Sequence[int], values: Mapping[str, Sequence[float]]) -> Failure | None:
        """The early end of the interval, if the run has turned by these observations; None if it goes on."""
        if self.rule is None or self.rule.turn is None:
            return None
        return self.rule.turn.failure(self.interval.schedule, steps, values)

    def save(
        self,
        checkpoints: Checkpoints,
        failure: Failure | None,
        save: Callable[[dict[str, Any], Path], None] = save_checkpoint,
    ) -> None:
        """Write the copy, if it is of the best state. Call it once the end is saved or has failed."""
        step = self.step_after(failure)
        if self._state is not None and step is not None and step == self._step:
            save(self._state, checkpoints.path(self.interval.fork, step))

    def step_after(self, failure: Failure | None) -> int | None:
        """The step whose state is kept: that of the end only if the end could be saved."""
        return self.interval.stop if self._is_end_best and failure is None else self._step


def is_evaluating(training: Training) -> bool:
    """Whether a training says that its values come from an evaluation."""
    return isinstance(training, Evaluating) and training.evaluates
