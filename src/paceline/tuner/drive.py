"""The loop driven by a runner: proposals become tasks, and checkpoints stay while something may begin from them."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from paceline.errors import TrainingError
from paceline.runner import Local, Runner, Task
from paceline.strategy import Proposal, Strategy
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
    on_event: "Callable[[Event], None] | None" = None,
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
        on_event: called with every new event.
    """
    runner = Local(training)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="paceline-"))) if study is None else Path(study)
        tuner = Tuner(
            lr=lr, steps=steps, cost=cost, strategy=strategy, mode=mode, study=folder, seed=seed, on_event=on_event
        )
        stack.callback(tuner.close)
        runner.stopwatch = tuner.stopwatch
        while (proposals := tuner.ask()) is not None:
            run_round(tuner, runner, folder, proposals)
        result, path = tuner.result, _final_state(tuner, folder)
        return replace(result, state=load_checkpoint(path) if study is None else path)


def run_round(tuner: Tuner, runner: Runner, folder: Path, proposals: list[Proposal]) -> None:
    """Run open proposals and report on each; a checkpoint goes when nothing open begins from it."""
    if any(p.start == 0 for p in proposals):
        runner.prepare(checkpoint_path(folder, 0, 0))
    begun = {_origin(p) for p in proposals}
    reported = {(fork.id, int(fork.schedule.change_points[-1])) for fork in tuner.history.alive}
    _keep_only(folder, {checkpoint_path(folder, *at) for at in begun | reported})
    waiting = {p.fork: p for p in proposals}
    for report in runner.run([_task(folder, p, tuner.goal.seed) for p in proposals]):
        p = waiting.pop(report.fork)
        if report.failure:
            tuner.fail(p, report.failure, report.steps, report.values)
            continue
        tuner.tell(p, report.steps, report.values)
        if p.start > 0 and _origin(p) not in {_origin(q) for q in waiting.values()}:
            checkpoint_path(folder, *_origin(p)).unlink(missing_ok=True)


def _origin(p: Proposal) -> tuple[int, int]:
    """Fork and step of the checkpoint a proposal begins from."""
    if p.start == 0:
        return 0, 0
    return (p.fork if p.parent is None else p.parent), p.start


def _task(folder: Path, p: Proposal, seed: int) -> Task:
    cloned = p.parent is not None
    fresh = int(np.random.SeedSequence([seed, p.fork, p.start]).generate_state(1)[0]) if cloned else None
    target = checkpoint_path(folder, p.fork, p.stop)
    return Task(p.fork, checkpoint_path(folder, *_origin(p)), target, p.stop, p.schedule, fresh)


def _keep_only(folder: Path, needed: set[Path]) -> None:
    """Delete checkpoints that nothing can begin from any more, and torn ones."""
    for path in (folder / "checkpoints").glob("*"):
        if path not in needed:
            path.unlink(missing_ok=True)


def _final_state(tuner: Tuner, folder: Path) -> Path:
    """The winner's checkpoint, the only one that stays; an error that says why where nobody won."""
    result = tuner.result
    if result.fork is None:
        reasons = sorted({fork.failure for fork in result.history.forks if fork.failure})
        raise TrainingError(
            f"{result.advice}; what the forks said: {'; '.join(reasons)}; the study is kept in {folder}"
        )
    path = checkpoint_path(folder, result.fork, tuner.goal.steps)
    _keep_only(folder, {path})
    return path
