"""Forks in turn, in this process, on any device. One training serves all of them: a fork's state is its checkpoint."""

from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import TrainingError
from paceline.runner.base import Factories, Noted, Report, Runner, Task, by_task
from paceline.runner.said import in_words
from paceline.training import Reseedable, Training, load_checkpoint, save_checkpoint


class Local(Runner):
    """Runs tasks one after the other.

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
        self.training, self._task = built(self._factories[0]), 0
        self._others: dict[int, Training] = {}
        self._save_state, self._load_state = save, load
        self._holds: Path | None = None

    def prepare(self, start: Path, task: int = 0) -> None:
        """Keep the state of the untrained run."""
        if not start.exists():
            self.turn_to(task)
            self._save(start)

    def turn_to(self, task: int) -> None:
        """Have the training of this task at hand."""
        if task != self._task:
            self._others[self._task], self._holds = self.training, None
            known = task in self._others
            self.training = self._others.pop(task) if known else built(self._factories[task])
            self._task = task

    def run(self, tasks: Sequence[Task]) -> Iterator[Report]:
        """Run all tasks in turn."""
        for task in tasks:
            yield self._run(task)

    def _run(self, task: Task) -> Report:
        going = self.interval(task)
        while True:
            try:
                self.on_step(task.fork, next(going))
            except StopIteration as end:
                return end.value

    def interval(self, task: Task) -> Generator[int, None, Report]:
        """Run one task, yielding the step of each observation; what it comes to is returned."""
        noted = Noted()
        try:
            self._begin(task)
            failure = yield from self._train(task, noted)
            if not failure:
                self._save(task.target)
                self._holds = task.target
        except TrainingError:
            raise
        except Exception as error:  # a fork that breaks is data; the others go on
            failure = in_words(error)
        return noted.report(task.fork, failure)

    def _train(self, task: Task, noted: Noted) -> Generator[int, None, str]:
        """Train and note what is observed; what went wrong, or nothing."""
        with self.stopwatch.on("training"):
            for step, value in self.training.advance(task.schedule, task.stop):
                failure = noted.add(step, value)
                if failure:
                    return failure
                yield noted.steps[-1]
        if not noted.steps:
            return f"the training yielded nothing up to step {task.stop:,}: it must yield (step, value) as it goes"
        return ""

    def _begin(self, task: Task) -> None:
        """Put the training into the state that the task begins from."""
        self.turn_to(task.task)
        if task.origin != self._holds:
            with self.stopwatch.on("checkpoint"):
                load_into(self.training.load_state_dict, self._load_state(task.origin), task.origin)
        self._holds = None
        if task.seed is not None and isinstance(self.training, Reseedable):
            self.training.reseed(task.seed)

    def _save(self, target: Path) -> None:
        with self.stopwatch.on("checkpoint"):
            self._save_state(self.training.state_dict(), target)


def built(make_training: Callable[[], Training]) -> Training:
    """The training that a factory makes, or what is wrong with it."""
    try:
        training = make_training()
    except Exception as error:
        how = "; it is called with nothing" if isinstance(error, TypeError) else ""
        raise TrainingError(f"the training factory raised {type(error).__name__}: {error}{how}") from error
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
            "build the training that the study was begun with, or begin a new study"
        ) from error
