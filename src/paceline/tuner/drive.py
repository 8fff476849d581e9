"""The loop driven by a runner. Checkpoints are kept while something may begin from them."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from paceline.errors import InputError, TrainingError
from paceline.runner import Factories, Runner, make_runner, without_variables
from paceline.strategy import Keep, Strategy
from paceline.study import Checkpoints, Event, Interval, describe_failure, read_settings, refuse_other_files
from paceline.traces import LearningRateRange, Mode
from paceline.training import ExpectedTime, Training, check_single_process, load_checkpoint
from paceline.tuner.changed_training import ChangedTraining
from paceline.tuner.hooks import Hooks, hooks_of
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result
from paceline.tuner.round_reports import round_reports


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
    retries: int = 1,
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
        retries: how often an interval is tried again, from its start, after an exception that may not come again:
            memory ran out, a process that loads data ended, reading or writing failed for a moment.
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

        tuner, started = run_study(stack, training, runner, folder, make, hooks, seed, retries)
        return keep_winner(tuner, started, folder, study)


def folder_of(stack: ExitStack, study: "str | Path | None") -> Path:
    """The study's folder; a temporary one, until the stack is left, where none is given.

    A training may change the working directory, so the path is made absolute before any runs.
    """
    return Path(stack.enter_context(TemporaryDirectory(prefix="paceline-")) if study is None else study).absolute()


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
    hooks: Hooks,
    seed: int,
    retries: int,
) -> tuple[Tuner, Runner]:
    """Run a study to its end; tuner and runner are open until the stack is left."""
    check_single_process("paceline.tune")
    refuse_other_files(folder)
    if type(retries) is not int or retries < 0:
        raise InputError(f"retries must be a whole number, 0 or more, got {retries!r}: 1 tries an interval once more")
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
    if hooks.on_step is not None:
        started.on_step = hooks.on_step
    changed = ChangedTraining(
        folder, training, tuner.goal.tasks, has_begun=tuner.has_begun, is_finished=tuner.is_finished
    )
    if tuner.is_finished:
        for task in range(len(changed.tasks)):
            changed.compare(task, started)
    while (intervals := tuner.ask()) is not None:
        for task in sorted({interval.task for interval in intervals}):
            with naming_task(tuner, task):
                changed.compare(task, started)
        run_round(tuner, started, intervals, retries, hooks.on_expected)
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


def run_round(
    tuner: Tuner,
    runner: Runner,
    intervals: list[Interval],
    retries: int,
    on_expected: "Callable[[ExpectedTime], None] | None" = None,
) -> None:
    """Train open intervals and report on each. A checkpoint is deleted when no open interval begins from it."""
    for task in sorted({interval.task for interval in intervals if interval.start == 0}):
        with naming_task(tuner, task):
            runner.prepare(task)
    if tuner.history.round == 1 and on_expected is not None and not tuner.goal.tasks:
        expected = runner.expected_seconds(tuner.strategy.planned_intervals(tuner.goal), tuner.goal.steps)
        if expected is not None:
            on_expected(expected)
    needed = _needed(runner, tuner, intervals)
    runner.keep_only(needed)
    waiting = {interval.fork: interval for interval in intervals}
    for report in round_reports(tuner, runner, intervals, retries):
        interval = waiting.pop(report.fork)
        if report.failure is not None:
            tuner.fail(interval, without_variables(report.failure), report.steps, report.values, kept=report.kept)
            continue
        tuner.tell(interval, report.steps, report.values, kept=report.kept)
        if waiting:
            still_needed = _needed(runner, tuner, list(waiting.values()))
            runner.discard(needed - still_needed)
            needed = still_needed


@contextmanager
def naming_task(tuner: Tuner, task: int) -> Generator[None]:
    """In a family, an error inside the block says which task cannot be built."""
    try:
        yield
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
