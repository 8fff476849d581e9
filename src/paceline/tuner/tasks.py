"""A family of tasks run by a runner (paper, section 4, Algorithm 2)."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.runner import Factories, Runner
from paceline.settings import FamilySettings, show_settings, with_changes
from paceline.strategy import MultiTask
from paceline.study import Checkpoints, Event, Study, describe_failure, load_known_runs, read_settings
from paceline.traces import LearningRateRange, Mode, Objective
from paceline.training import Training
from paceline.tuner.drive import folder_of, no_winner, run_study
from paceline.tuner.families import KnownRuns, known_sources, read_known_runs
from paceline.tuner.hooks import hooks_of
from paceline.tuner.loop import Tuner, objective_of
from paceline.tuner.user_warning import warn_user


def tune_tasks(
    tasks: "Mapping[str, Callable[[], Training]]",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    known: "KnownRuns | None" = None,
    mode: Mode = "min",
    study: "str | Path | None" = None,
    seed: int = 0,
    runner: "str | Callable[[Factories], Runner]" = "local",
    on_event: "Callable[[Event], None] | None" = None,
    on_step: "Callable[[int, int], None] | None" = None,
    retries: int = 1,
    quiet: bool = False,
    settings: FamilySettings | None = None,
    **changes: Any,
) -> Study:
    """Find a schedule for each task of a family, with few whole runs of some of them.

    Args:
        tasks: builds one run of each task, by its name.
        steps: length of a run.
        lr: lower and upper bound of the rate; of its peak if there is a base.
        known: runs made before, which inform and cost nothing: a study's folder or a list of `Trace` by the name of its
            task; a family study brings its own names. Tasks that are only known are not run.
        mode: "min" for a loss, "max" otherwise.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local", "streams" or "ray", or what makes a runner, as in `tune`.
        on_event: called with every new event.
        on_step: called with (run, step) as runs go.
        retries: how often an interval is tried again after an exception that may not come again, as in `tune`.
        quiet: whether to say nothing, as in `tune`.
        settings: all other settings as one object; the defaults of `FamilySettings` without it.
        changes: single settings by their names, such as `intervals=3, budget=10`.

    Returns:
        The study: `answers`, `best`, `embedding`, `traces()`. Without `study=` its folder is deleted with the
        checkpoints.
    """
    family_settings = with_changes(settings or FamilySettings(), changes, tune_tasks)
    if not isinstance(tasks, Mapping) or not tasks:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"tasks must be a dict of name and factory, got {tasks!r}: pass {{'a': make_a, 'b': make_b}}")
    objective = objective_of(mode)
    with ExitStack() as stack:
        folder = folder_of(stack, study)
        hooks = stack.enter_context(hooks_of(study, on_event, on_step, quiet=quiet))
        strategy = with_known_runs(MultiTask(family_settings), known or {}, folder, objective)

        def make(_: Runner) -> Tuner:
            return Tuner(
                lr=lr,
                steps=steps,
                strategy=strategy,
                mode=mode,
                study=folder,
                seed=seed,
                on_event=hooks.on_event,
                tasks=tuple(tasks),
            )

        tuner, open_runner = run_study(stack, list(tasks.values()), runner, folder, make, hooks, seed, retries)
        result = Study.open(folder)
        if not result.answers:
            raise no_winner(tuner.result, study)
        warn_of_tasks_that_failed(result)
        checkpoints = Checkpoints.of_study(folder)
        states = {checkpoints.path(best.fork, steps) for best in result.best.values()}
        for path in states:
            open_runner.fetch(path)
        open_runner.keep_only(states)
        return result


def warn_of_tasks_that_failed(study: Study) -> None:
    """Warn of tasks of which no run reached the end: their answers rest on the other tasks."""
    failures = {interval.task: "" for interval in study.intervals}
    for report in study.reports:
        if report.failure is not None:
            task = study.state.first_interval(study.state.forks[report.fork]).task
            failures[task] = failures[task] or " ".join(describe_failure(report.failure).split())
    for number, name in enumerate(study.tasks):
        answer = study.answers.get(name)
        if answer is not None and answer.runs and answer.failed == answer.runs:
            warn_user(
                f"every run of task {name!r} failed ({failures.get(number, '')}): its schedule rests on the other "
                "tasks alone, run it once by hand at a small rate before you use it"
            )


def with_known_runs(strategy: MultiTask, known: KnownRuns, folder: Path, objective: Objective) -> MultiTask:
    """The strategy with runs made before: the study's own copy if it has one, else read from where they are."""
    if not known:
        return strategy
    copy = read_settings(folder)["settings"].get("known") if (folder / "study.json").exists() else None
    runs = (
        load_known_runs(folder, copy["digest"])
        if copy
        else read_known_runs(known, weights=strategy.settings.judged_weights, mode=objective.mode)
    )
    return replace(strategy, known_runs=tuple(runs), sources=known_sources(known))


show_settings(tune_tasks, FamilySettings)
