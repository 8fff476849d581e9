"""Runs made before, joined into a family of tasks; and a family study as its settings and runs.

Old runs are worth keeping. A study of one run becomes a task, a family brings its tasks along, and traces read from
any log (`integrations.read_traces`) become a task too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.errors import InputError
from paceline.strategy import Family, Goal, MultiTask
from paceline.study import Study, digest_of_runs, load_known_runs, with_parents
from paceline.traces import LearningRateRange, Mode, Objective, Trace, Weights

RunSource = str | Path | Study | Sequence[Trace]
KnownRuns = Mapping[str, RunSource]


def load_family(study: "str | Path | Study") -> tuple[Family, list[Trace]]:
    """A family study, running or finished, as its settings and all its runs so far, known ones included.

    `family.fit(traces)` is the model that its next decision would be made with.
    """
    family_study = study if isinstance(study, Study) else Study.open(study)
    settings = family_study.settings
    if not family_study.tasks:
        raise InputError(
            f"{family_study.path} is a study of one run: expected one of a family of tasks, made with tune_tasks or "
            f"`paceline tasks`; this one can be joined into a family as known={{'name': {str(family_study.path)!r}}}"
        )
    strategy = MultiTask.from_json(settings["strategy"], _copied_runs(family_study))
    objective = strategy.objective(Objective(settings["mode"]))
    goal = Goal(
        LearningRateRange.of(settings["lr"]), settings["steps"], objective, settings["seed"], family_study.tasks
    )
    traces = family_study.traces(strategy.settings.judged_weights)
    return strategy.family(goal), strategy.all_runs(traces, objective)


def with_coordinates(family: Family, task: str, at: "Mapping[str, float] | None") -> Family:
    """The family with the coordinates of a new task, which must have the same ones as the others."""
    known = family.settings.at
    if known is None and at is None:
        return family
    if known is None or at is None:
        names = "none" if known is None else ", ".join(next(iter(known.values())))
        raise InputError(
            f"a new task has the same coordinates as the tasks of its family, {names}, got at={at}: "
            + ("leave at= out" if known is None else "pass at={...} with these names")
        )
    return replace(family, settings=replace(family.settings, at={**known, task: at}))


def read_known_runs(known: KnownRuns, *, weights: Weights = "raw", mode: Mode = "min") -> list[Trace]:
    """Runs made before, with the names of their tasks, ready to be joined with others.

    Args:
        known: a study's folder or a list of `Trace` by the name of the task; a study of a family brings the names of
            its own tasks, and its own known runs.
        weights: the weights whose values are read, if both were observed.
        mode: "min" or "max": which values a study must have looked for.
    """
    runs = list[Trace]()
    for name, source in known.items():
        traces, copies = _read_source(name, source, weights, mode), dict[int, Trace]()
        for trace in with_parents(traces):  # numbered anew, because runs of several studies have the same names
            copies[id(trace)] = replace(
                trace,
                name=f"known {len(runs) + len(copies)}",
                parent=None if trace.parent is None else copies[id(trace.parent)],
                objective=Objective(mode, weights=weights),
                task=trace.task if isinstance(source, str | Path | Study) and trace.task else name,
            )
        runs += copies.values()
    return runs


def known_sources(known: KnownRuns) -> dict[str, str]:
    """Where known runs come from, in words that stay the same when a study is continued."""
    return {
        name: f"{len(source)} traces, {digest_of_runs(list(source))}"
        if not isinstance(source, str | Path | Study)
        else str(source.path if isinstance(source, Study) else source)
        for name, source in known.items()
    }


def _read_source(name: str, source: RunSource, weights: Weights, mode: Mode) -> list[Trace]:
    """The runs of one source, or an error that says what is wrong with it."""
    if isinstance(source, str | Path | Study):
        study = source if isinstance(source, Study) else Study.open(source)
        source_mode, traces = str(study.settings.get("mode", "min")), [*_copied_runs(study), *study.traces(weights)]
    else:
        traces = list(source)
        wrong = [trace for trace in traces if not isinstance(trace, Trace)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong:
            raise InputError(f"known[{name!r}]: expected a study's folder or a list of Trace, got {wrong[0]!r} in it")
        source_mode = next((trace.objective.mode for trace in traces if trace.objective.mode != mode), mode)
    if source_mode != mode:
        raise InputError(
            f"known[{name!r}]: expected runs with mode {mode!r}, got {source_mode!r}: their values cannot be compared"
        )
    if not traces:
        raise InputError(f"known[{name!r}]: expected runs with observations, got none in {source}: leave it out")
    return traces


def _copied_runs(study: Study) -> list[Trace]:
    """The known runs that a family study was begun with, from its own copy."""
    known = study.settings.get("known")
    return [] if known is None else load_known_runs(study.path, known["digest"])
