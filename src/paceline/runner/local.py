"""Forks one after the other, in this process. One training serves all of them: a fork's state is its checkpoint."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paceline.errors import TrainingError
from paceline.runner.base import Factories, ObservationBuffer, Runner, by_task
from paceline.runner.best_of_interval import BestOfInterval, is_evaluating
from paceline.runner.fingerprint import Fingerprint, fingerprint_of_training
from paceline.runner.fresh_training import note_trained, refuse_shared_weights, refuse_trained
from paceline.runner.user_errors import failure_of
from paceline.study import Failure, Interval, Report
from paceline.training import (
    ExpectedTime,
    Reseedable,
    Timed,
    Training,
    copy_state,
    load_checkpoint,
    same_states,
    save_checkpoint,
)


class Local(Runner):
    """Trains intervals one after the other.

    Args:
        make_training: builds one run, called once; or one of each task of a family.
        save: save(state, path) keeps a checkpoint.
        load: load(path) gives it back.
    """

    def __init__(
        self,
        make_training: Factories,
        *,
        save: Callable[[dict[str, Any], Path], None] = save_checkpoint,
        load: Callable[[Path], dict[str, Any]] = load_checkpoint,
    ) -> None:
        super().__init__()
        self._factories = by_task(make_training)
        self.training = build(self._factories[0])
        self._fingerprints = {0: fingerprint_of_training(self.training)}
        self._task: int = 0
        self._others: dict[int, Training] = {}
        self._save_state, self._load_state = save, load
        self._loaded: Path | None = None
        self._is_checked = False

    def evaluates(self) -> bool:
        """Whether the training says that its values come from an evaluation."""
        return is_evaluating(self.training)

    def prepare(self, task: int = 0) -> None:
        """Keep the state of the untrained run."""
        start = self.checkpoints.path(task, 0)
        if not start.exists():
            self.turn_to(task)
            refuse_trained(self.training)
            self.measure()
            self._save(start)

    def measure(self) -> None:
        """Have the training measure itself, before its first state is saved."""
        if isinstance(self.training, Timed):
            with self.stopwatch.on("measure"):
                self.training.measure()

    def expected_seconds(self, intervals: Sequence[tuple[int, int, int]], steps: int) -> ExpectedTime | None:
        """How long a study of runs of `steps` takes, if the training has measured itself."""
        return self.training.expected_seconds(intervals, steps) if isinstance(self.training, Timed) else None

    def turn_to(self, task: int) -> None:
        """Have the training of this task at hand."""
        if task != self._task:
            next_training = self._others.pop(task) if task in self._others else self._build(task)
            self._others[self._task], self._loaded = self.training, None
            self.training, self._task = next_training, task

    def _build(self, task: int) -> Training:
        training = build(self._factories[task])
        refuse_shared_weights(training, [self.training, *self._others.values()])
        self._fingerprints[task] = fingerprint_of_training(training)
        return training

    def fingerprint(self, task: int, *, may_build: bool = True) -> Fingerprint | None:
        """What the training of a task consisted of when it was built."""
        if may_build:
            self.turn_to(task)
        return self._fingerprints.get(task)

    def close(self) -> None:
        """Note how the models are left."""
        for training in (self.training, *self._others.values()):
            note_trained(training)

    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        """Train all intervals in turn."""
        for interval in intervals:
            yield self._run(interval)

    def _run(self, interval: Interval) -> Report:
        observed = self.train(interval)
        while True:
            try:
                self.on_step(interval.fork, next(observed))
            except StopIteration as end:
                return end.value

    def train(self, interval: Interval) -> Generator[int, None, Report]:
        """Train one interval, yielding the step of each observation; the report is returned."""
        observations, best = ObservationBuffer(interval), BestOfInterval(interval, self.keep_rule(interval))
        self.turn_to(interval.task)  # an exception of a factory is no failure of a fork
        try:
            self._load(interval)
            failure = yield from self._advance(interval, observations, best)
        except TrainingError:
            raise
        except Exception as error:  # a fork that breaks is data; the others go on
            failure = failure_of(error)
        if failure is None:
            failure = self._save_end(interval)
        with self.stopwatch.on("checkpoint"):
            best.save(self.checkpoints, failure, self._save_state)
        return observations.report(failure, best.step_after(failure))

    def _save_end(self, interval: Interval) -> Failure | None:
        """Keep the state that the interval leaves behind. A state that cannot be had fails the fork."""
        target = self.checkpoints.target(interval)
        try:
            self._save(target)
        except TrainingError:
            raise
        except Exception as error:
            return failure_of(error)
        self._loaded = target
        return None

    def _advance(
        self, interval: Interval, observations: ObservationBuffer, best: BestOfInterval
    ) -> Generator[int, None, Failure | None]:
        """Train and collect observations; how it failed is returned, None if it did not."""
        at_last_yield: dict[str, Any] | None = None
        with self._on_training():
            for step, value in self.training.advance(interval.schedule, interval.stop):
                failure = observations.add(step, value)
                if failure is not None:
                    return failure
                best.offer(observations.steps[-1], observations.latest, self._copy)
                failure = best.turn(observations.steps, observations.columns)
                if failure is not None:
                    return failure
                if step == interval.stop and best.rule is not None and not self._is_checked:
                    at_last_yield = self._copy()
                yield observations.steps[-1]
        if at_last_yield is not None:
            self._check_complete(at_last_yield)
        if observations.steps:
            return None
        yielded = f"the training yielded nothing up to step {interval.stop:,}"
        return failure_of(TrainingError(f"{yielded}: it must yield (step, value) as it trains"))

    @contextmanager
    def _on_training(self) -> Generator[None]:
        """Count the time inside as training, but for what the training spends on other things."""
        parts: Mapping[str, float] = self.training.seconds if isinstance(self.training, Timed) else {}
        before = dict(parts)
        try:
            with self.stopwatch.on("training"):
                yield
        finally:
            for name, seconds in parts.items():
                self.stopwatch.move("training", name, seconds - before.get(name, 0.0))

    def _check_complete(self, at_last_yield: dict[str, Any]) -> None:
        """Refuse a training whose state is complete only after its last yield: the best weights would be wrong."""
        if not same_states(at_last_yield, self.training.state_dict()):
            raise TrainingError(
                "state_dict() gives another state after the last yield of advance() than at it, so the state of the "
                "best moment of a run cannot be kept: bring the training's own attributes up to date before each "
                'yield, or pass keep="last"'
            )
        self._is_checked = True

    def _load(self, interval: Interval) -> None:
        """Put the training into the state that the interval begins from."""
        origin = self.checkpoints.origin(interval)
        if origin != self._loaded:
            with self.stopwatch.on("checkpoint"):
                load_into(self.training.load_state_dict, self._load_state(origin), origin)
        self._loaded = None
        seed = self.clone_seed(interval)
        if seed is not None and isinstance(self.training, Reseedable):
            self.training.reseed(seed)

    def _copy(self) -> dict[str, Any]:
        return copy_state(self.training.state_dict())

    def _save(self, target: Path) -> None:
        with self.stopwatch.on("checkpoint"):
            self._save_state(self.training.state_dict(), target)


def build(make_training: Callable[[], Training]) -> Training:
    """The training that a factory makes. An exception of the factory is raised as it is, with a note."""
    try:
        training = make_training()
    except Exception as error:
        how = "; it is called without arguments" if isinstance(error, TypeError) else ""
        error.add_note(f"paceline: the training factory raised this{how}")
        raise
    if not isinstance(training, Training):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TrainingError(
            "the training factory must return a Training (advance, state_dict, load_state_dict), "
            f"got {type(training).__name__}: return a TorchTraining or a class of your own with these methods"
        )
    return training


def load_into(load_state_dict: Callable[[dict[str, Any]], None], state: dict[str, Any], path: Path) -> None:
    """Continue from a checkpoint, or say that it is of another training."""
    try:
        load_state_dict(state)
    except TrainingError:
        raise
    except Exception as error:  # no fault of this fork: all of them would fail, and the study would be lost
        first = " ".join(str(error).splitlines()[:2])
        raise TrainingError(
            f"the state in {path} does not fit the training ({type(error).__name__}: {first}): "
            "build the training that the study started with, or start a new study"
        ) from error
