"""The loop driven by a runner. Checkpoints are kept while something may begin from them."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from paceline.errors import InputError, TrainingError
from paceline.runner import Factories, Runner, is_mistake, make_runner, without_variables
from paceline.strategy import Keep, Strategy
from paceline.study import (
    Checkpoints,
    Event,
    Failure,
    Interval,
    Report,
    describe_failure,
    read_settings,
    refuse_other_files,
)
from paceline.traces import LearningRateRange, Mode
from paceline.training import Training, check_single_process, load_checkpoint
from paceline.tuner.hooks import hooks_of
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result


def tune(
    training: "Callable[[], Training]",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    cost: float = 2.3,
    strategy: Strategy | None = None,
    mode: Mode = "min",
    study: "str | Path | None" = None,
    seed: int = 0,
    runner: "str | Callable[[Factories], Runner]" = "local",
    on_event: "Callable[[Event], None] | None" = None,
    on_step: "Callable[[int, int], None] | None" = None,
    keep: "Keep | None" = None,
    early_stop: bool = True,
    quiet: bool = False,
) -> Result:
    """Tune the learning rate of one training run.

    Args:
        training: builds one run: a `TorchTraining`, or anything with advance, state_dict and load_state_dict.
        steps: length of the run.
        lr: lower and upper bound of the rate.
        cost: total steps of all forks, in units of one run.
        strategy: another strategy, in place of `horizon` at this cost.
        mode: "min" for a loss, "max" otherwise.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local" runs forks in turn in this process, "streams" side by side on one GPU, "ray" on a cluster; or
            what makes a runner from `training`, with settings of its own: `partial(Ray, gpus=0.5)`.
        on_event: called with every new event.
        on_step: called with (fork, step) as forks go.
        keep: "best" returns the weights of the best moment of the run, "last" those of its end. By default "best" if
            the training evaluates (`evaluate=`), else "last".
        early_stop: whether to end when nothing that is left can be expected to beat the best moment. It has no effect
            with keep="last".
        quiet: whether to say nothing. Otherwise the logger `paceline` has a line at the start and one for each
            decision, and a terminal or a notebook shows a bar.
    """
    with ExitStack() as stack:
        folder = folder_of(stack, study)
        hooks = stack.enter_context(hooks_of(study, on_event, on_step, quiet=quiet))

        def make(started: Runner) -> Tuner:
            return Tuner(
                lr=lr,
                steps=steps,
                cost=cost,
                strategy=strategy,
                mode=mode,
                study=folder,
                seed=seed,
                on_event=hooks.on_event,
                keep=keep or what_to_keep(folder, started),
                early_stop=early_stop,
            )

        tuner, started = run_study(stack, training, runner, folder, make, hooks.on_step, seed)
        return keep_winner(tuner, started, folder, study)


def folder_of(stack: ExitStack, study: "str | Path | None") -> Path:
    """The study's folder; a temporary one, until the stack is left, where none is given."""
    return Path(stack.enter_context(TemporaryDirectory(prefix="paceline-")) if study is None else study)


def what_to_keep(folder: Path, runner: Runner) -> Keep:
    """What a continued study keeps; the best weights of a new one if its training evaluates."""
    if (folder / "study.json").exists():
        return read_settings(folder)["settings"].get("keep", "last")
    return "best" if runner.evaluates() else "last"


def run_study(
    stack: ExitStack,
    training: Factories,
    runner: "str | Callable[[Factories], Runner]",
    folder: Path,
    make_tuner: Callable[[Runner], Tuner],
    on_step: "Callable[[int, int], None] | None",
    seed: int,
) -> tuple[Tuner, Runner]:
    """Run a study to its end; tuner and runner are open until the stack is left."""
    check_single_process("paceline.tune")
    refuse_other_files(folder)
    started = stack.enter_context(closing(make_runner(runner, training)))
    started.attach(Checkpoints.of_study(folder), seed)
    tuner = make_tuner(started)
    stack.callback(tuner.close)
    stack.callback(started.close)  # before the lock is released, and the folder removed
    if (folder / "storage.json").exists() and not started.reads_storage:
        raise InputError(
            f"the study in {folder} keeps its checkpoints in a storage, see storage.json there: continue it with "
            "runner='ray' and the same storage"
        )
    started.stopwatch, started.keep_rule, started.is_named = tuner.stopwatch, tuner.keep_rule, tuner.is_named
    if on_step is not None:
        started.on_step = on_step
    while (intervals := tuner.ask()) is not None:
        run_round(tuner, started, intervals)
    return tuner, started


def keep_winner(tuner: Tuner, runner: Runner, folder: Path, study: "str | Path | None") -> Result:
    """The result of a study of one run. Only the winner's state is kept."""
    result = tuner.result
    if result.fork is None or result.schedule is None:
        raise no_winner(result, study)
    best = result.history.best
    origin = (result.fork, int(result.schedule.change_points[-1])) if best is None else best.origin
    path = Checkpoints.of_study(folder).path(*origin)
    runner.fetch(path)
    runner.keep_only({path})
    return replace(result, state=load_checkpoint(path) if study is None else path)


def run_round(tuner: Tuner, runner: Runner, intervals: list[Interval]) -> None:
    """Train open intervals and report on each. A checkpoint is deleted when no open interval begins from it.

    An exception that no rate would mend is raised if it ends the first interval of a study. The interval stays open, so
    the same call goes on once the mistake is corrected.
    """
    for task in sorted({interval.task for interval in intervals if interval.start == 0}):
        _prepare(tuner, runner, task)
    needed = _needed(runner, tuner, intervals)
    runner.keep_only(needed)
    waiting = {interval.fork: interval for interval in intervals}
    for report in _reports(tuner, runner, intervals):
        interval = waiting.pop(report.fork)
        if report.failure is not None:
            tuner.fail(interval, without_variables(report.failure), report.steps, report.values, kept=report.kept)
            continue
        tuner.tell(interval, report.steps, report.values, kept=report.kept)
        if waiting:
            still_needed = _needed(runner, tuner, list(waiting.values()))
            runner.discard(needed - still_needed)
            needed = still_needed


def _reports(tuner: Tuner, runner: Runner, intervals: list[Interval]) -> Generator[Report]:
    """The reports of a round as they come. Mistakes in a task's first round wait for its fork with the lowest rate.

    At a high rate an exception may have many causes. If it is raised at the lowest rate too, it is a mistake.
    """
    lowest = _lowest_of_new_tasks(tuner, intervals)
    held = {task: list[Report]() for task in lowest}
    task_of = {interval.fork: interval.task for interval in intervals}
    first = list(lowest.values())
    for report in runner.run([*first, *(interval for interval in intervals if interval not in first)]):
        task = task_of[report.fork]
        if task in lowest and report.fork == lowest[task].fork:
            if is_mistake(report.failure):
                raise_mistake(report.failure, tuner.task_of(lowest[task]))
            yield report
            yield from held.pop(task)
            del lowest[task]
        elif task in lowest and is_mistake(report.failure):
            held[task].append(report)
        else:
            yield report


def _lowest_of_new_tasks(tuner: Tuner, intervals: list[Interval]) -> dict[int, Interval]:
    """The interval with the lowest rate of each task that no fork has worked on yet."""
    worked = {fork.task for fork in tuner.history.forks if fork.failure is None and fork.trace is not None}
    lowest: dict[int, Interval] = {}
    for interval in sorted(intervals, key=lambda interval: interval.multiplier):
        if interval.task not in worked:
            lowest.setdefault(interval.task, interval)
    return lowest


def raise_mistake(failure: Failure | None, task: str) -> NoReturn:
    """Raise a user's own exception, with a note that says what to do."""
    assert failure is not None
    assert failure.error is not None
    of_task = f" of task {task!r}" if task else ""
    failure.error.add_note(
        f"paceline: the training{of_task} raised this in its first interval, at the lowest rate, so another rate would "
        "not help: correct it, and make the same call again"
    )
    raise failure.error


def _prepare(tuner: Tuner, runner: Runner, task: int) -> None:
    """Write the first state of a task. In a family, an error says which task cannot be built."""
    try:
        runner.prepare(task)
    except Exception as error:
        if not tuner.goal.tasks:
            raise
        name = tuner.goal.tasks[task]
        if isinstance(error, TrainingError):
            raise TrainingError(f"task {name!r}: {error}") from error.__cause__
        error.add_note(f"paceline: this is task {name!r}")
        raise


def _needed(runner: Runner, tuner: Tuner, intervals: list[Interval]) -> set[Path]:
    """The checkpoints that something may begin from, and those about to be written: at most one each per living fork.

    If the best weights are kept, there is at most one more per living fork.

    The origins of forks that failed in this round are needed too, until one fork has reached its end: a strategy may go
    back there.
    """
    history, stop, waiting = tuner.history, intervals[0].stop, {interval.fork for interval in intervals}
    arrived = {(f.id, int(f.schedule.change_points[-1])) for f in history.alive if f.id not in waiting}
    failed = {f.origin for f in history.forks if f.failure and f.schedule.change_points[-1] == stop}
    states = {interval.origin for interval in intervals} | (arrived or failed)
    states |= {(interval.fork, interval.stop) for interval in intervals} | tuner.kept_states
    if tuner.strategy.restarts:
        states |= {(task, 0) for task in range(max(1, len(tuner.goal.tasks)))}
    return {runner.checkpoints.path(*state) for state in states}


def no_winner(result: Result, study: "str | Path | None") -> TrainingError:
    """Why nobody won: the advice, each distinct failure, and where to look. A user's own exception is its cause."""
    failures = {describe_failure(fork.failure): fork.failure for fork in result.history.forks if fork.failure}
    forks = f"; failures: {'; '.join(sorted(failures))}" if failures else ""
    where = f"what was observed, and the best state, are kept in {study}" if study else "pass study= to keep the states"
    if not result.seconds["training"]:  # nothing was run now
        where = f"that was before, and {study} is not run again: if the training has changed, choose another folder"
    error = TrainingError(f"{result.advice}{forks}; {where}")
    error.__cause__ = next((failure.error for failure in failures.values() if failure.error is not None), None)
    return error
