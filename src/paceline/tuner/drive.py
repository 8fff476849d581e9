"""The loop driven by a runner: proposals become tasks, and checkpoints stay while something may begin from them."""

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from paceline.errors import InputError, TrainingError
from paceline.runner import Factories, Runner, Task, make_runner
from paceline.strategy import History, Proposal, Strategy
from paceline.study import Event
from paceline.study.study import checkpoint_path
from paceline.traces import LearningRateRange, Objective
from paceline.training import Training, load_checkpoint
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result


def tune(
    training: "Callable[[], Training]",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    cost: float = 2.3,
    strategy: Strategy | None = None,
    mode: "str | Objective" = "min",
    study: "str | Path | None" = None,
    seed: int = 0,
    runner: "str | Callable[[Factories], Runner]" = "local",
    on_event: "Callable[[Event], None] | None" = None,
    on_step: "Callable[[int, int], None] | None" = None,
) -> Result:
    """Tune the learning rate of one training run.

    Args:
        training: builds one run: a `TorchTraining`, or anything with advance, state_dict and load_state_dict.
        steps: length of the run.
        lr: lower and upper bound of the rate.
        cost: total steps of all forks, in units of one run.
        strategy: another strategy, in place of `horizon` at this cost.
        mode: "min" for a loss, "max" otherwise; or a whole `Objective`.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local" runs forks in turn in this process, "streams" side by side on one GPU, "ray" on a cluster; or
            what makes a runner from `training`, with settings of its own: `partial(Ray, gpus=0.5)`.
        on_event: called with every new event.
        on_step: called with (fork, step) as forks go.
    """
    with ExitStack() as stack:
        folder = folder_of(stack, study)

        def make() -> Tuner:
            return Tuner(
                lr=lr, steps=steps, cost=cost, strategy=strategy, mode=mode, study=folder, seed=seed, on_event=on_event
            )

        tuner, doing = driven(stack, training, runner, folder, make, on_step)
        return ended(tuner, doing, folder, study)


def folder_of(stack: ExitStack, study: "str | Path | None") -> Path:
    """The study's folder; a temporary one, until the stack is left, where none is given."""
    return Path(stack.enter_context(TemporaryDirectory(prefix="paceline-")) if study is None else study)


def driven(
    stack: ExitStack,
    training: Factories,
    runner: "str | Callable[[Factories], Runner]",
    folder: Path,
    make_tuner: Callable[[], Tuner],
    on_step: "Callable[[int, int], None] | None",
) -> tuple[Tuner, Runner]:
    """Run a study to its end; tuner and runner are open until the stack is left."""
    doing = stack.enter_context(closing(make_runner(runner, training)))
    tuner = make_tuner()
    stack.callback(tuner.close)
    stack.callback(doing.close)  # before the lock goes, and the folder
    if (folder / "storage.json").exists() and not doing.reads_storage:
        raise InputError(
            f"the study in {folder} keeps its checkpoints in a storage, see storage.json there: go on with it with "
            "runner='ray' and the same storage"
        )
    doing.stopwatch = tuner.stopwatch
    if on_step is not None:
        doing.on_step = on_step
    while (proposals := tuner.ask()) is not None:
        run_round(tuner, doing, folder, proposals)
    return tuner, doing


def ended(tuner: Tuner, runner: Runner, folder: Path, study: "str | Path | None") -> Result:
    """What a study of one run found, with the winner's state, which is all that is kept."""
    result = tuner.result
    if result.fork is None or result.schedule is None:
        raise TrainingError(advice_of(result, study))
    path = checkpoint_path(folder, result.fork, int(result.schedule.change_points[-1]))
    runner.fetch(path)
    runner.keep_only({path}, path.parent)
    return replace(result, state=load_checkpoint(path) if study is None else path)


def run_round(tuner: Tuner, runner: Runner, folder: Path, proposals: list[Proposal]) -> None:
    """Run open proposals and report on each; a checkpoint goes when nothing open begins from it."""
    for task in sorted({p.task for p in proposals if p.start == 0}):
        _prepare(tuner, runner, folder, task)
    runner.keep_only(_needed(folder, tuner, proposals), folder / "checkpoints")
    waiting = {p.fork: p for p in proposals}
    for report in runner.run([_task(folder, p, tuner.history) for p in proposals]):
        p = waiting.pop(report.fork)
        if report.failure:
            tuner.fail(p, report.failure, report.steps, report.values)
            continue
        tuner.tell(p, report.steps, report.values)
        if waiting:
            runner.keep_only(_needed(folder, tuner, list(waiting.values())), folder / "checkpoints")


def _prepare(tuner: Tuner, runner: Runner, folder: Path, task: int) -> None:
    """See that the start of a task is there; of a family, say which one cannot be built."""
    try:
        runner.prepare(checkpoint_path(folder, task, 0), task)
    except TrainingError as error:
        if not tuner.goal.tasks:
            raise
        raise TrainingError(f"task {tuner.goal.tasks[task]!r}: {error}") from error.__cause__


def _needed(folder: Path, tuner: Tuner, proposals: list[Proposal]) -> set[Path]:
    """The checkpoints that something may begin from, and those on their way: at most one each per living fork.

    Where those that failed in this round began is needed too, until one fork is through: a strategy may go back there.
    """
    history, stop, waiting = tuner.history, proposals[0].stop, {p.fork for p in proposals}
    through = {(f.id, int(f.schedule.change_points[-1])) for f in history.alive if f.id not in waiting}
    failed = {f.origin for f in history.forks if f.failure and f.schedule.change_points[-1] == stop}
    states = {history.fork(number).origin for number in waiting} | (through or failed)
    states |= {(p.fork, p.stop) for p in proposals}
    if tuner.strategy.restarts:
        states |= {(task, 0) for task in range(max(1, len(tuner.goal.tasks)))}
    return {checkpoint_path(folder, *state) for state in states}


def _task(folder: Path, p: Proposal, history: History) -> Task:
    origin, target = (checkpoint_path(folder, *at) for at in (history.fork(p.fork).origin, (p.fork, p.stop)))
    words = [history.goal.seed, p.fork, p.start]
    fresh = int(np.random.SeedSequence(words).generate_state(1)[0]) if p.parent is not None else None
    return Task(p.fork, origin, target, p.stop, p.schedule, fresh, p.start, p.task)


def advice_of(result: Result, study: "str | Path | None") -> str:
    """Why nobody won, in the forks' own words, and where to look."""
    said = "; ".join(sorted({fork.failure for fork in result.history.forks if fork.failure}))
    forks = f"; what the forks said: {said}" if said else ""
    where = f"what was learnt, and the best state, are kept in {study}" if study else "pass study= to keep the states"
    if not result.seconds["training"]:  # nothing was run now
        where = f"that was before, and {study} is not run again: if the training has changed, choose another folder"
    return f"{result.advice}{forks}; {where}"
