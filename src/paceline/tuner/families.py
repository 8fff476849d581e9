"""Runs made before, joined into a family of tasks; and a family study as its settings and runs.

What was trained so far is worth knowing, whoever trained it: a study of one run becomes a task, a family brings its
tasks along, and traces read off any log (`integrations.read_traces`) become one too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.errors import InputError
from paceline.strategy import Goal, MultiTask
from paceline.strategy.multitask import Family
from paceline.study import Study, digest, read_known, with_parents
from paceline.traces import LearningRateRange, Mode, Objective, Trace, Weights

Known = Mapping[str, "str | Path | Study | Sequence[Trace]"]


def family_of(study: "str | Path | Study") -> tuple[Family, list[Trace]]:
    """A family study, running or finished, as its settings and all its runs so far, those known beforehand included.

    `family.fit(traces)` is the model that its next decision would be made with.
    """
    opened = study if isinstance(study, Study) else Study.open(study)
    settings = opened.settings
    if not opened.tasks:
        raise InputError(
            f"{opened.path} is a study of one run: expected one of a family of tasks, made with tune_tasks or "
            f"`paceline tasks`; this one can be joined into a family as known={{'name': {str(opened.path)!r}}}"
        )
    strategy = MultiTask.from_json(settings["strategy"], _copied(opened))
    objective = strategy.objective(Objective(settings["mode"]))
    goal = Goal(LearningRateRange.of(settings["lr"]), settings["steps"], objective, settings["seed"], opened.tasks)
    return strategy.family(goal), strategy.joined(opened.traces(strategy.weights), objective)


def known_runs(known: Known, *, of: Weights = "raw", mode: Mode = "min") -> list[Trace]:
    """Runs made before, with the names of their tasks, ready to be joined with others.

    Args:
        known: a study's folder or a list of `Trace` by the name of the task; a study of a family brings the names of
            its own tasks, and what it knew itself.
        of: the weights whose values are read, where both were observed.
        mode: "min" or "max": what a study must have been after.
    """
    found = list[Trace]()
    for name, source in known.items():
        named, new = _read(name, source, of, mode), dict[int, Trace]()
        for trace in with_parents(named):  # a run is known by its name: those of several studies are called alike
            new[id(trace)] = replace(
                trace,
                name=f"known {len(found) + len(new)}",
                parent=None if trace.parent is None else new[id(trace.parent)],
                objective=Objective(mode, weights=of),
                task=trace.task if isinstance(source, str | Path | Study) and trace.task else name,
            )
        found += new.values()
    return found


def sources_of(known: Known) -> dict[str, str]:
    """Where known runs come from, in words that stay the same when a study is continued."""
    return {
        name: f"{len(source)} traces, {digest(list(source))}"
        if not isinstance(source, str | Path | Study)
        else str(source.path if isinstance(source, Study) else source)
        for name, source in known.items()
    }


def _read(name: str, source: "str | Path | Study | Sequence[Trace]", of: Weights, mode: Mode) -> list[Trace]:
    """The runs of one source, or what is wrong with it."""
    if isinstance(source, str | Path | Study):
        study = source if isinstance(source, Study) else Study.open(source)
        theirs, traces = str(study.settings.get("mode", "min")), [*_copied(study), *study.traces(of)]
    else:
        traces = list(source)
        wrong = [trace for trace in traces if not isinstance(trace, Trace)]  # pyright: ignore[reportUnnecessaryIsInstance]
        if wrong:
            raise InputError(f"known[{name!r}]: expected a study's folder or a list of Trace, got {wrong[0]!r} in it")
        theirs = next((trace.objective.mode for trace in traces if trace.objective.mode != mode), mode)
    if theirs != mode:
        raise InputError(f"known[{name!r}]: expected runs with mode {mode!r}, got {theirs!r}: values do not compare")
    if not traces:
        raise InputError(f"known[{name!r}]: expected runs with observations, got none in {source}: leave it out")
    return traces


def _copied(study: Study) -> list[Trace]:
    """What a family study knew beforehand."""
    known = study.settings.get("known")
    return [] if known is None else read_known(study.path, known["digest"])
