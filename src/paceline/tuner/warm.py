"""A run of a task nobody has seen, begun with what is known of others like it."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.runner import Factories, Runner
from paceline.shapes import shape_from_json
from paceline.strategy import NewTask
from paceline.strategy.multitask import Family, Space
from paceline.strategy.newtask import Thought, whole_intervals
from paceline.study import Event, Study, read_known, read_settings
from paceline.traces import LearningRateRange, Trace
from paceline.training import Training
from paceline.tuner.drive import folder_of, keep_winner, run_study
from paceline.tuner.families import family_of
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result


def warm_start(
    family: "str | Path | Study",
    make_new: "Callable[[], Training]",
    *,
    steps: int | None = None,
    probe: int = 0,
    how: str = "dynamic",
    place: str = "posterior",
    measure: str = "gaussian",
    forks: int = 1,
    alphas: tuple[float, float] = (0.7, 0.3),
    name: str = "new",
    thought: Thought | None = None,
    study: "str | Path | None" = None,
    seed: int = 0,
    runner: "str | Callable[[Factories], Runner]" = "local",
    on_event: "Callable[[Event], None] | None" = None,
    on_step: "Callable[[int, int], None] | None" = None,
) -> Result:
    """Train a new task well at once, with what a family of tasks has shown.

    Args:
        family: the study of the family, from `tune_tasks`; its bounds, intervals and base are used.
        make_new: builds one run of the new task.
        steps: length of the run, as in the family.
        probe: steps at the beginning, whole intervals of them, that are spent on learning where the task lies.
        how: "dynamic" plans the rest anew at every change point; "probe" plans it once, after the probe; "universal"
            runs what is best on average over the tasks there may be.
        place: "posterior" integrates over where the task may lie, "point" takes the most probable place.
        measure: where it may lie beforehand: "gaussian" around the known tasks, or their convex "hull".
        forks: runs side by side, where it is dynamic.
        alphas: quantile of the final value that is maximised, at the first decision and at the last.
        name: of the new task.
        thought: how hard to think at a decision.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local", "streams" or "ray", or what makes a runner, as in `tune`.
        on_event: called with every new event.
        on_step: called with (fork, step) as forks go.
    """
    with ExitStack() as stack:
        folder = folder_of(stack, study)
        settings, runs = _begun(folder) if (folder / "study.json").exists() else family_of(family)
        strategy = NewTask.of(
            settings,
            runs,
            task=name,
            how=how,
            place=place,
            measure=measure,
            probe=whole_intervals(settings.space, probe),
            forks=forks,
            alphas=alphas,
            thought=thought or Thought(),
        )

        def make() -> Tuner:
            return Tuner(
                lr=settings.space.lr_range,
                steps=settings.space.steps if steps is None else steps,
                strategy=strategy,
                mode=strategy.model.encoder.segmenter.objective,
                study=folder,
                seed=seed,
                on_event=on_event,
            )

        tuner, doing = run_study(stack, make_new, runner, folder, make, on_step)
        return keep_winner(tuner, doing, folder, study)


def _begun(folder: Path) -> tuple[Family, list[Trace]]:
    """The family that a study was begun with, as it holds it itself: it needs nothing else to go on."""
    settings: dict[str, Any] = read_settings(folder)["settings"]
    known = settings["strategy"].get("family")
    if known is None:
        raise InputError(f"{folder} is another kind of study: choose another folder for that of the new task")
    space = Space(
        LearningRateRange.of(settings["lr"]), settings["steps"], known["intervals"], shape_from_json(known["base"])
    )
    model = {name: known[name] for name in ("dims", "link", "order", "progress")}
    family = Family(space, tuple(known["tasks"]), **model)
    return family, read_known(folder, settings["known"]["digest"])
