"""A run of a task nobody has seen, begun with what is known of others like it."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paceline.errors import TrainingError
from paceline.runner import Factories, Runner
from paceline.strategy import NewTask
from paceline.strategy.multitask import Family, Space
from paceline.strategy.newtask import whole_intervals
from paceline.study import Event, Study
from paceline.study.known import read_known
from paceline.study.study import checkpoint_path, read_settings
from paceline.traces import LearningRateRange, Trace
from paceline.traces.shapes import shape_from_json
from paceline.training import Training, load_checkpoint
from paceline.tuner.drive import advice_of, driven
from paceline.tuner.families import family_of
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result


def warm_start(
    family: "str | Path | Study",
    make_new: "Callable[[], Training]",
    *,
    steps: int | None = None,
    probe: int = 0,
    how: str | None = None,
    place: str = "posterior",
    measure: str = "gaussian",
    forks: int = 1,
    alpha: float = 0.5,
    name: str = "new",
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
        alpha: quantile of the final value that is maximised; less than 0.5 is more careful.
        name: of the new task.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        runner: "local", "streams" or "ray", or what makes a runner, as in `tune`.
        on_event: called with every new event.
        on_step: called with (fork, step) as forks go.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="paceline-"))) if study is None else Path(study)
        settings, runs = _begun(folder) if (folder / "study.json").exists() else family_of(family)
        strategy = NewTask.of(
            settings,
            runs,
            how=how or "dynamic",
            place=place,
            measure=measure,
            probe=whole_intervals(settings.space, probe),
            forks=forks,
            alpha=alpha,
        )

        def make() -> Tuner:
            return Tuner(
                lr=settings.space.lr_range,
                steps=settings.space.steps if steps is None else steps,
                strategy=strategy,
                mode=strategy.model.frame.cutting.objective,
                study=folder,
                seed=seed,
                on_event=on_event,
                tasks=(name,),
            )

        tuner, doing = driven(stack, [make_new], runner, folder, make, on_step)
        result = tuner.result
        if result.fork is None or result.schedule is None:
            raise TrainingError(advice_of(result, study))
        path = checkpoint_path(folder, result.fork, int(result.schedule.change_points[-1]))
        doing.fetch(path)
        doing.keep_only({path}, path.parent)
        return replace(result, state=load_checkpoint(path) if study is None else path)


def _begun(folder: Path) -> tuple[Family, list[Trace]]:
    """The family that a study was begun with, as it holds it itself: it needs nothing else to go on."""
    settings: dict[str, Any] = read_settings(folder)["settings"]
    known = settings["strategy"]["family"]
    space = Space(
        LearningRateRange.of(settings["lr"]), settings["steps"], known["intervals"], shape_from_json(known["base"])
    )
    family = Family(space, tuple(known["tasks"]), dims=known["dims"], link=known["link"], order=known["order"])
    return family, read_known(folder, settings["known"]["digest"])
