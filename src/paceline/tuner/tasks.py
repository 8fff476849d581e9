"""A family of tasks driven by a runner (paper, section 4, Algorithm 2)."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from paceline.errors import InputError
from paceline.model import Link
from paceline.runner import Factories, Runner
from paceline.shapes import Shape
from paceline.strategy import MultiTask
from paceline.strategy.multitask import Effort
from paceline.study import Checkpoints, Event, Study, read_known, read_settings
from paceline.traces import LearningRateRange, Objective, Transform, Weights
from paceline.training import Training
from paceline.tuner.drive import folder_of, no_winner, run_study
from paceline.tuner.families import Known, known_runs, sources_of
from paceline.tuner.loop import Tuner


def tune_tasks(
    tasks: "Mapping[str, Callable[[], Training]]",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    intervals: int = 5,
    initial: int | None = None,
    budget: int = 20,
    batch: int = 1,
    base: "str | Shape" = "constant",
    known: "Known | None" = None,
    alpha: float = 0.8,
    answer_alpha: float = 0.3,
    infill: str = "variance",
    dims: int = 2,
    link: "str | Link" = "signed",
    order: int = 2,
    progress: bool = True,
    of: "Weights | None" = None,
    transform: Transform = "log",
    effort: "Effort | None" = None,
    mode: "str | Objective" = "min",
    study: "str | Path | None" = None,
    seed: int = 0,
    runner: "str | Callable[[Factories], Runner]" = "local",
    on_event: "Callable[[Event], None] | None" = None,
    on_step: "Callable[[int, int], None] | None" = None,
) -> Study:
    """Find a schedule for each task of a family, with few whole runs of some of them.

    Args:
        tasks: builds one run of each task, by its name.
        steps: length of a run.
        lr: lower and upper bound of the rate; of its peak, where there is a base.
        intervals: d, of a schedule.
        initial: first runs by design; by default two for each task that no run is known of, one if the budget is small.
        budget: how many runs are made in all, the first ones included.
        batch: runs at once, so that a cluster or a GPU is kept busy.
        base: "constant" tunes a rate for each interval, as in the paper; a shape ("linear", "cosine", ...) tunes
            multipliers of it, "horizon" of the one that `tune` uses.
        known: runs made before, which inform and cost nothing: a study's folder or a list of `Trace` by the name of its
            task; a family study brings its own names. Tasks that are only known are not run.
        alpha: quantile of the optimistic set; higher explores more.
        answer_alpha: quantile of the answers: 0.5 risk-neutral, less to be careful.
        infill: "variance" runs what teaches most about the optimistic set, "optimistic" runs the set itself.
        dims: dimensions of the task embedding.
        link: of the trace model, as `order` and `progress` (`TraceModel.fit`).
        order: past intervals that the next one depends on.
        progress: whether it depends on the summed rate so far, too.
        of: the weights that are judged, "raw" or "averaged"; by default averaged where there is a base.
        transform: scale of the model, "log" or "identity".
        effort: how hard to search for the next run.
        mode: "min" for a loss, "max" otherwise; or a whole `Objective`.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local", "streams" or "ray", or what makes a runner, as in `tune`.
        on_event: called with every new event.
        on_step: called with (run, step) as runs go.

    Returns:
        The study: `answers`, `best`, `embedding`, `traces()`. Without `study=` its folder is gone, checkpoints too.
    """
    if not isinstance(tasks, Mapping) or not tasks:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"tasks must be a dict of name and factory, got {tasks!r}: pass {{'a': make_a, 'b': make_b}}")
    with ExitStack() as stack:
        folder = folder_of(stack, study)
        strategy = MultiTask(
            intervals=intervals,
            base=base,
            initial=initial,
            budget=budget,
            batch=batch,
            alpha=alpha,
            answer_alpha=answer_alpha,
            infill=infill,
            dims=dims,
            link=link,
            order=order,
            progress=progress,
            of=of,
            transform=transform,
            effort=effort or Effort(),
        )
        wanted = mode if isinstance(mode, Objective) else Objective(mode)  # pyright: ignore[reportArgumentType]
        strategy = joined(strategy, known or {}, folder, wanted)

        def make() -> Tuner:
            return Tuner(
                lr=lr,
                steps=steps,
                strategy=strategy,
                mode=wanted,
                study=folder,
                seed=seed,
                on_event=on_event,
                tasks=tuple(tasks),
            )

        tuner, doing = run_study(stack, list(tasks.values()), runner, folder, make, on_step)
        found = Study.open(folder)
        if not found.answers:
            raise no_winner(tuner.result, study)
        checkpoints = Checkpoints.of_study(folder)
        states = {checkpoints.path(best.fork, steps) for best in found.best.values()}
        for path in states:
            doing.fetch(path)
        doing.keep_only(states)
        return found


def joined(strategy: MultiTask, known: Known, folder: Path, objective: Objective) -> MultiTask:
    """The strategy with runs known beforehand: those that a study holds already, else read from where they are."""
    if not known:
        return strategy
    held = read_settings(folder)["settings"].get("known") if (folder / "study.json").exists() else None
    runs = read_known(folder, held["digest"]) if held else known_runs(known, of=strategy.weights, mode=objective.mode)
    return replace(strategy, known=tuple(runs), sources=sources_of(known))
