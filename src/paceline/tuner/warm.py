"""A run of a new task, with what the runs of a family have shown."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.runner import Factories, Runner
from paceline.settings import DONE_BY_0_1_0, FamilySettings, NewTaskSettings, show_settings, with_changes
from paceline.shapes import shape_from_json
from paceline.strategy import Answer, Family, Goal, Keep, NewTask
from paceline.study import Event, Study, load_known_runs, read_settings
from paceline.traces import LearningRateRange, Objective, Trace
from paceline.training import Training
from paceline.tuner.drive import folder_of, keep_winner, run_study, what_to_keep
from paceline.tuner.families import load_family, with_coordinates
from paceline.tuner.hooks import hooks_of
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result


def warm_start(
    family: "str | Path | Study",
    make_new: "Callable[[], Training]",
    *,
    steps: int | None = None,
    name: str = "new",
    at: "Mapping[str, float] | None" = None,
    study: "str | Path | None" = None,
    seed: int = 0,
    runner: "str | Callable[[Factories], Runner]" = "local",
    on_event: "Callable[[Event], None] | None" = None,
    on_step: "Callable[[int, int], None] | None" = None,
    retries: int = 1,
    quiet: bool = False,
    keep: "Keep | None" = None,
    early_stop: bool = True,
    settings: NewTaskSettings | None = None,
    **changes: Any,
) -> Result:
    """Train a new task once, with rates chosen from what a family of tasks has shown and from the run itself.

    Args:
        family: the study of the family, from `tune_tasks`; its bounds, intervals and base are used.
        make_new: builds one run of the new task.
        steps: length of the run, as in the family.
        name: of the new task.
        at: its coordinates, if the tasks of the family have some, such as {"rows": 60_000}.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local", "streams" or "ray", or what makes a runner, as in `tune`.
        on_event: called with every new event.
        on_step: called with (fork, step) as forks go.
        retries: how often an interval is tried again after an exception that may not come again, as in `tune`.
        quiet: whether to say nothing, as in `tune`.
        keep: "best" returns the weights of the best moment of the run, "last" those of its end; as in `tune`.
        early_stop: whether to end when nothing that is left can be expected to beat the best moment.
        settings: all other settings as one object; the defaults of `NewTaskSettings` without it.
        changes: single settings by their names, such as `probe=50, forks=2`.
    """
    new_task_settings = with_changes(settings or NewTaskSettings(), changes, warm_start)
    with ExitStack() as stack:
        folder = folder_of(stack, study)
        hooks = stack.enter_context(hooks_of(study, on_event, on_step, quiet=quiet))
        source, runs = _load_copied_family(folder) if (folder / "study.json").exists() else load_family(family)
        strategy = NewTask.of(with_coordinates(source, name, at), runs, name, new_task_settings)

        def make(started: Runner) -> Tuner:
            return Tuner(
                lr=strategy.space.lr_range,
                steps=strategy.space.steps if steps is None else steps,
                strategy=strategy,
                mode=strategy.model.encoder.segmenter.objective.mode,
                study=folder,
                seed=seed,
                on_event=hooks.on_event,
                keep=keep or what_to_keep(folder, started),
                early_stop=early_stop,
            )

        tuner, open_runner = run_study(stack, make_new, runner, folder, make, hooks, seed, retries)
        return keep_winner(tuner, open_runner, folder, study)


def plan_task(
    family: "str | Path | Study",
    *,
    name: str = "new",
    at: "Mapping[str, float] | None" = None,
    seed: int = 0,
    settings: NewTaskSettings | None = None,
) -> Answer:
    """The schedule for a task that has no runs, and the final values it is expected to reach.

    Nothing is trained. The task lies at its coordinates, and anywhere else that tasks of the family may lie.

    Args:
        family: the study of the family, from `tune_tasks`.
        name: of the new task.
        at: its coordinates, if the tasks of the family have some.
        seed: of everything random.
        settings: how hard to search, as in `warm_start`; without a probe.
    """
    source, runs = load_family(family)
    universal = replace(settings or NewTaskSettings(), method="universal", probe=0, forks=1)
    return NewTask.of(with_coordinates(source, name, at), runs, name, universal).plan(seed)


def _load_copied_family(folder: Path) -> tuple[Family, list[Trace]]:
    """The family that a study was begun with, from the study's own copy, so that it needs nothing else to go on."""
    settings: dict[str, Any] = read_settings(folder)["settings"]
    family = settings["strategy"].get("family")
    if family is None:
        raise InputError(f"{folder} is another kind of study: choose another folder for the study of the new task")
    goal = Goal(
        LearningRateRange.of(settings["lr"]),
        settings["steps"],
        Objective(**family["objective"]),
        tasks=tuple(family["tasks"]),
    )
    names = ("intervals", "dims", "link", "order", "summed_rate", "end_share", "at")
    shared = {name: {**DONE_BY_0_1_0, **family}[name] for name in names}
    runs = load_known_runs(folder, settings["known"]["digest"])
    return Family(goal, FamilySettings(base=shape_from_json(family["base"]), **shared)), runs


show_settings(warm_start, NewTaskSettings)
