"""A family of tasks from the first run to the answers: by hand, through `tune_tasks`, joined with old runs, cut off."""

import inspect
import json
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from paceline import Schedule, Study, Trace, Tuner, tune, tune_tasks
from paceline.errors import InputError, JournalError, TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner.streams import Streams
from paceline.shapes import Linear
from paceline.strategy import Dynamic, MultiTask
from paceline.strategy.multitask import Effort, Family, Space
from paceline.strategy.multitask.reading import readable
from paceline.study import Decided, Dropped, Finished, Interval, read_journal
from paceline.study.known import digest, read_known, write_known
from paceline.traces import LearningRateRange
from paceline.tuner import family_of, known_runs
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream

BOUNDS, STEPS, EVERY = (0.01, 1.5), 60, 4
SMALL = Effort(outer=4, inner=4, rough=4, screened=8, starts=1, moves=1, draws=8, grid=3, sweeps=1)
QUICK = {"intervals": 3, "dims": 1, "link": "linear", "effort": SMALL}
NOISES = {"calm": 0.2, "rough": 1.0, "wild": 2.0}


def quadratic(noise: float, *, seed: int = 3) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise, dims=20), seed, every=EVERY)


TASKS = {name: partial(quadratic, noise) for name, noise in NOISES.items()}


class Diverging(QuadraticTraining):
    """A task whose runs all come apart, some steps in."""

    def __init__(self, after: int) -> None:
        super().__init__(Quadratic(dims=20), every=EVERY)
        self.after = after

    def advance(self, schedule, stop) -> Iterator:
        for step, values in super().advance(schedule, stop):
            yield step, values if step < self.after else {"raw": float("nan"), "averaged": float("nan")}


def found(**settings) -> Study:
    tasks = settings.pop("tasks", TASKS)
    return tune_tasks(tasks, steps=STEPS, lr=BOUNDS, **{**QUICK, "budget": 5, **settings})


def make(study: Path | None = None, **settings) -> Tuner:
    tasks = settings.pop("tasks", list(NOISES))
    strategy = MultiTask(**{**QUICK, "budget": 4, "initial": 3, "batch": 2, **settings})
    return Tuner(lr=BOUNDS, steps=STEPS, strategy=strategy, tasks=tasks, study=study)


def report(tuner: Tuner, p: Interval) -> None:
    seen = list(quadratic(NOISES[tuner.task_of(p)], seed=p.fork).advance(p.schedule, p.stop))
    tuner.tell(p, [step for step, _ in seen], {of: [v[of] for _, v in seen] for of in ("raw", "averaged")})


def drive(tuner: Tuner) -> Tuner:
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            report(tuner, p)
    return tuner


def facts(path: Path) -> list[str]:
    """What a study decided and saw, without how long it took."""
    kinds = Interval | Observed | Failed | Dropped | Finished | Decided
    kept = [e for e in read_journal(path / "journal.jsonl") if isinstance(e, kinds)]
    return sorted(repr(replace(e, seconds=0.0) if isinstance(e, Decided) else e) for e in kept)


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return found(study=tmp_path_factory.mktemp("studies") / "family", batch=2)


def test_a_family_ends_with_an_answer_for_each_task(family: Study) -> None:
    assert family.tasks == tuple(NOISES)
    assert list(family.answers) == list(NOISES)
    for answer in family.answers.values():
        assert answer.low <= answer.median <= answer.high
        assert answer.schedule.change_points.tolist() == [0, 20, 40, 60]
    assert set(family.embedding) == set(NOISES)
    assert sum(answer.runs for answer in family.answers.values()) == len(family.intervals) == 5
    assert family.finished == Finished(None, STEPS, None, "raw")
    runs = {trace.name: trace for trace in family.traces()}
    for task, best in family.best.items():
        assert runs[str(best.fork)].task == task
        own = [float(np.mean(trace.values[-5:])) for trace in runs.values() if trace.task == task]
        assert best.value == pytest.approx(min(own), rel=1e-4)
        assert best.schedule == runs[str(best.fork)].schedule
    kept = {path.name for path in (family.path / "checkpoints").iterdir()}
    assert kept == {f"{best.fork}-{STEPS}.pt" for best in family.best.values()}


def test_decisions_say_why_and_what_is_expected(family: Study) -> None:
    first, infill, last = family.decisions[0], family.decisions[-2], family.decisions[-1]
    assert first.reasons[0].startswith("first runs by Latin hypercube, 1 to 2 of 3: task '")
    assert "the variance at the best schedules is expected to fall from" in infill.reasons[0]
    assert "with a run of another task to: " in infill.reasons[0]
    assert [band["fork"] for band in infill.details["forecast"]] == [3, 4]
    assert set(infill.details["infill"][0]["rivals"]) == set(NOISES)
    assert last.reasons == ("5 runs are made: an answer for each task",)
    again = tune_tasks(TASKS, steps=STEPS, lr=BOUNDS, **QUICK, budget=5, batch=2, study=family.path)
    assert again.answers == family.answers
    assert len(again.events) == len(family.events)


def test_the_optimistic_set_can_be_run_itself() -> None:
    tuner = drive(make(None, infill="optimistic", initial=3, budget=5, batch=2))
    tasks = {p.fork: list(NOISES)[p.task] for p in tuner.study.intervals}
    rows = [row for decision in tuner.study.decisions for row in decision.details.get("infill", [])]
    assert [row["rivals"] for row in rows] == [{tasks[row["fork"]]: row["after"]} for row in rows]
    assert len(rows) == 2
    assert list(tuner.study.answers) == list(NOISES)


def test_a_study_is_read_back_as_the_family_that_made_it(family: Study) -> None:
    plan, traces = family_of(family.path)
    assert plan.tasks == tuple(NOISES)
    answers = plan.answers(plan.fit(traces), traces)
    assert {t: a.schedule for t, a in answers.items()} == {t: a.schedule for t, a in family.answers.items()}


def test_cut_after_any_line_a_family_goes_on_with_the_same_decisions(tmp_path: Path) -> None:
    quick = {"tasks": ["calm", "wild"], "initial": 2, "budget": 4, "intervals": 2}
    drive(make(tmp_path / "whole", **quick)).close()
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(2, len(lines), 3):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "study.json", folder)
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        drive(make(folder, **quick)).close()
        assert facts(folder) == facts(tmp_path / "whole"), cut


def test_by_hand_without_a_folder_the_study_is_there_too() -> None:
    tuner = make()
    with pytest.raises(InputError, match="needs both their names and a strategy for families, got no tasks"):
        Tuner(lr=BOUNDS, steps=STEPS, strategy=MultiTask())
    with pytest.raises(InputError, match="got 2 tasks and Dynamic"):
        Tuner(lr=BOUNDS, steps=STEPS, strategy=Dynamic.greedy(), tasks=["a", "b"])
    proposals = tuner.ask()
    assert proposals is not None
    assert {tuner.task_of(p) for p in proposals} < set(NOISES)
    for p in proposals:
        report(tuner, p)
    assert set(drive(tuner).study.answers) == set(NOISES)


def test_a_task_that_always_fails_costs_three_runs_and_the_others_are_answered(tmp_path: Path) -> None:
    tasks = {"fine": TASKS["calm"], "silent": partial(Diverging, 0), "falling": partial(Diverging, 20)}
    study = found(tasks=tasks, budget=8, batch=3, study=tmp_path)
    failed = [event for event in study.events if isinstance(event, Failed)]
    assert set(study.best) == {"fine"}
    assert sum(study.answers[task].failed for task in ("silent", "falling")) == len(failed)
    assert all(study.answers[task].failed <= 5 for task in ("silent", "falling"))  # three, and what is left of a batch
    assert study.answers["fine"].failed == 0
    assert len(study.intervals) == 8


def test_where_every_run_fails_it_says_so_and_ends(tmp_path: Path) -> None:
    tasks = {"a": partial(Diverging, 0), "b": partial(Diverging, 20)}
    with pytest.raises(TrainingError, match=r"every run failed: lower the upper bound.* is not finite.* kept in"):
        found(tasks=tasks, budget=7, study=tmp_path)
    study = Study.open(tmp_path)
    assert study.finished is not None
    assert not study.answers
    assert len(study.intervals) <= 6


def test_a_factory_that_raises_is_named() -> None:
    with pytest.raises(TrainingError, match=r"task '(x|y)': the training factory raised ZeroDivisionError"):
        found(tasks={"a": TASKS["calm"], "x": lambda: 1 / 0, "y": lambda: 1 / 0})


def test_runs_that_failed_count_as_standing_still() -> None:
    space, steps = Space(LearningRateRange(*BOUNDS), STEPS, 3), np.arange(0, 61, 4)
    sound = Trace(steps, 2.0 - steps / 100, Schedule.constant(0.1, STEPS), name="a", task="a")
    diverged = replace(sound, values=np.where(steps < 30, sound.values, np.nan), failed=True, name="b")
    exploded = replace(sound, values=np.where(steps < 30, sound.values, 1e30), name="c")
    hopeless = replace(sound, values=np.full(len(steps), np.nan), failed=True, name="d")
    read = {trace.name: trace for trace in readable([sound, diverged, exploded, hopeless], space)}
    assert set(read) == {"a", "b", "c"}
    assert read["a"].last_step == 60
    for name in "bc":
        assert not read[name].failed
        assert read[name].last_step == 40
        assert set(read[name].values[read[name].steps > 20]) == {1.8}


# runs known beforehand


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one run, with clones on a decaying base."""
    path = tmp_path_factory.mktemp("studies") / "single"
    tune(partial(quadratic, 0.5), steps=STEPS * 2, lr=BOUNDS, cost=3.2, study=path)
    return path


def test_old_studies_join_a_family_and_are_not_run(single: Path, family: Study, tmp_path: Path) -> None:
    old, copied = tmp_path / "old", tmp_path / "family"
    shutil.copytree(single, old)
    shutil.copytree(family.path, copied)
    known = {"single": old, "before": copied}
    settings = {"known": known, "budget": 3, "tasks": {"calm": TASKS["calm"], "new": partial(quadratic, 1.5)}}
    study = found(study=tmp_path / "joined", **settings)
    plan, traces = family_of(study)
    assert plan.tasks == study.tasks == ("calm", "new")
    assert set(plan.others) == {"single", "rough", "wild"}
    assert set(study.answers) == {"calm", "new"}
    assert set(study.embedding) == {"calm", "new", "single", "rough", "wild"}
    assert study.answers["calm"].runs > sum(p.task == 0 for p in study.intervals)
    first = study.decisions[0].reasons[0]
    assert first.startswith("first runs by Latin hypercube, 1 of 2: task 'new'")  # calm is known
    assert any(trace.parent is not None for trace in traces)
    assert len({trace.name for trace in traces}) == len(traces)
    # the study needs nothing but itself
    shutil.rmtree(old)
    shutil.rmtree(copied)
    journal = study.path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    before = facts(study.path)
    journal.write_bytes(b"".join(lines[:-4]))
    assert found(study=study.path, **settings).answers == study.answers
    assert facts(study.path) == before
    with pytest.raises(InputError, match="other settings"):
        found(study=study.path, **{**settings, "known": {"single": old}})
    (study.path / "known.jsonl").write_text("")
    with pytest.raises(JournalError, match="is not what the study was begun with"):
        found(study=study.path, **settings)


def test_known_runs_come_on_the_same_base_or_as_rates(single: Path) -> None:
    runs = known_runs({"old": single}, of="averaged")
    base = runs[0].schedule.base
    settings = {"known": {"old": single}, "tasks": {"new": TASKS["rough"]}, "budget": 1}
    space = Space(LearningRateRange(*BOUNDS), STEPS * 2, 3)
    rates, multipliers = readable(runs, space), readable(runs, replace(space, base=base))
    named = {run.name: run for run in runs}  # those that were observed only once say nothing
    for run, rate, multiplier in zip((named[rate.name] for rate in rates), rates, multipliers, strict=True):
        at = np.arange(run.last_step)
        np.testing.assert_allclose(rate.schedule(at), run.schedule(at), rtol=1e-6)
        assert rate.schedule.tuned_base is None
        assert multiplier.schedule == run.schedule
    assert any(run.parent is not None for run in rates)
    with pytest.raises(InputError, match=r"of 60 steps on the base .* multipliers of other bases do not compare"):
        found(base=base, **settings)
    with pytest.raises(InputError, match="expected runs of 120 steps on the base Linear"):
        tune_tasks(settings["tasks"], steps=STEPS * 2, lr=BOUNDS, known=settings["known"], base=Linear(), **QUICK)
    study = tune_tasks(
        {"new": TASKS["rough"]}, steps=STEPS * 2, lr=BOUNDS, known=settings["known"], base=base, budget=1, **QUICK
    )
    assert study.answers["new"].schedule.base == base
    assert study.settings["strategy"]["of"] == "averaged"


def test_traces_of_any_origin_can_be_known(tmp_path: Path) -> None:
    steps = np.arange(4, 61, 4)
    traces = [Trace.from_table(steps, np.full(15, r), 1 / (1 + r * steps)) for r in (0.1, 0.5)]
    child = traces[0].fork([64], [0.1], Schedule.constant(0.1, 80))
    runs = known_runs({"log": [child, traces[1]]})
    assert [run.task for run in runs] == ["log"] * 3
    assert runs[1].parent is runs[0]
    write_known(tmp_path, runs)
    assert digest(read_known(tmp_path)) == digest(runs)
    assert read_known(tmp_path / "elsewhere") == []
    study = found(known={"log": traces}, initial=0, budget=1)
    assert study.answers
    with pytest.raises(InputError, match=r"known\['log'\]: expected runs with mode 'max', got 'min'"):
        known_runs({"log": traces}, mode="max")
    with pytest.raises(InputError, match="expected runs with observations, got none"):
        known_runs({"log": []})
    with pytest.raises(InputError, match="is a study of one run: expected one of a family"):
        family_of(Study(tmp_path, {}, ()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 2}, "budget counts all runs, the 3 first ones included, got 2: raise it"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"of": "both"}, 'of must be "raw" or "averaged"'),
        ({"initial": 0}, "a model needs runs to begin with, or known ones"),
        ({"tasks": {}}, "tasks must be a dict of name and factory"),
        ({"intervals": 61}, "intervals must lie between 1 and the 60 steps"),
    ],
)
def test_what_is_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        found(**settings)


def test_values_that_are_not_positive_are_modelled_as_they_are() -> None:
    tuner = make(tasks=["a"], initial=1, budget=2)
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            tuner.tell(p, list(range(5, 61, 5)), [-10.0 - 0.01 * step - p.schedule(30) for step in range(5, 61, 5)])
    assert tuner.study.answers["a"].median < 0


def test_runs_that_are_observed_too_rarely_stop_it_after_the_first_ones() -> None:
    tuner = make()
    first, second = tuner.ask() or []
    tuner.tell(first, [10, 60], [2.0, 1.0])
    with pytest.raises(InputError, match=r"expected a value before step 20, .* the first at step 30: observe"):
        tuner.tell(second, [30, 60], [2.0, 1.0])


def test_a_family_runs_side_by_side(tmp_path: Path) -> None:
    tasks = {
        "a": partial(device_digits, evaluate="none", every=3),
        "b": partial(device_digits, evaluate="none", every=3),
    }
    study = tune_tasks(
        tasks,
        steps=30,
        lr=(1e-4, 1e-1),
        budget=2,
        batch=2,
        study=tmp_path,
        runner=partial(Streams, make_stream=HostWorkStream),
        **QUICK,
    )
    assert set(study.answers) == {"a", "b"}
    assert not [event for event in study.events if isinstance(event, Failed)]
    assert json.loads((tmp_path / "study.json").read_text())["settings"]["tasks"] == ["a", "b"]


def test_defaults_are_the_same_wherever_a_family_begins() -> None:
    """Written out three times, for who reads the signature."""
    called = {name: p.default for name, p in inspect.signature(tune_tasks).parameters.items()}
    strategy, plan = MultiTask(), Family(Space(LearningRateRange(*BOUNDS), STEPS), ("a",))
    shared = {f.name for f in fields(MultiTask)} & set(called) - {"known", "effort"}
    assert {name: called[name] for name in shared} == {name: getattr(strategy, name) for name in shared}
    shared = {f.name for f in fields(MultiTask)} & {f.name for f in fields(Family)}
    assert {name: getattr(plan, name) for name in shared} == {name: getattr(strategy, name) for name in shared}
