"""Studies of format 1 are read and continued: their settings had other names, and some are gone."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paceline import Study, tune_tasks, warm_start
from paceline.errors import InputError
from paceline.strategy import Dynamic
from paceline.study import Created, Decided, Dropped, Failure, Finished, Interval, Report, because, read_journal
from paceline.study.format1 import INFILL_FIELDS, SEARCH_FIELDS, upgrade_event, upgrade_failure, upgrade_settings
from paceline.traces import Schedule
from paceline.tuner import load_family
from tests.quick_families import QUICK, QUICK_NEW_TASK, quadratic
from tests.tuner.toy_study import drive, facts, make

GOLDEN = Path(__file__).parents[1] / "golden" / "journal-1.jsonl"
SCHEDULE = Schedule([0.1, 0.05], [0, 10, 20], 100, "linear")
TASKS = {name: partial(quadratic, noise) for name, noise in (("calm", 0.2), ("wild", 2.0))}
SETTINGS = {**QUICK, "intervals": 2, "budget": 2, "batch": 2}


def former_names(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    return {old: values[new] for old, new in names.items()}


def write_format_1(study: Path, **changes: Any) -> None:
    """The settings of a family, or of a new task, as version 0.1.0 wrote them."""
    data = json.loads((study / "study.json").read_text())
    strategy = data["settings"]["strategy"]
    search = former_names(strategy.pop("search"), SEARCH_FIELDS)
    if strategy["strategy"] == "multitask":
        strategy["effort"] = {**search, **former_names(strategy.pop("infill_search"), INFILL_FIELDS)}
        strategy["of"], strategy["progress"] = strategy.pop("weights"), strategy.pop("summed_rate")
        del strategy["max_failures"]
    else:
        strategy["thought"] = {"places": strategy.pop("locations"), "models": strategy.pop("models"), **search}
        for new, old in (("method", "how"), ("location", "place"), ("prior", "measure")):
            strategy[old] = strategy.pop(new)
        objective = strategy["family"]["objective"]
        strategy["look"], objective["every"], objective["of"] = "final", None, objective.pop("weights")
        strategy["family"]["progress"] = strategy["family"].pop("summed_rate")
    strategy.update(changes)
    (study / "study.json").write_text(json.dumps({**data, "format": 1}))


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies") / "family"
    tune_tasks(TASKS, steps=40, lr=(0.01, 1.5), study=path, **SETTINGS)
    return path


def test_a_family_of_format_1_goes_on(family: Path, tmp_path: Path) -> None:
    shutil.copytree(family, tmp_path / "family")
    write_format_1(tmp_path / "family")
    assert Study.open(tmp_path / "family").settings == Study.open(family).settings
    again = tune_tasks(TASKS, steps=40, lr=(0.01, 1.5), study=tmp_path / "family", **SETTINGS)
    assert again.answers == Study.open(family).answers
    assert load_family(tmp_path / "family")[0] == load_family(family)[0]


def test_a_new_task_of_format_1_goes_on(family: Path, tmp_path: Path) -> None:
    def begin(study: Path):
        return warm_start(family, partial(quadratic, 1.0), study=study, **QUICK_NEW_TASK)

    value = begin(tmp_path / "new").value
    shutil.copytree(tmp_path / "new", tmp_path / "other")
    write_format_1(tmp_path / "new")
    assert begin(tmp_path / "new").value == value
    write_format_1(tmp_path / "other", look="next")
    with pytest.raises(InputError, match="other settings"):
        begin(tmp_path / "other")


def former_dynamic(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a strategy with forks as version 0.1.0 wrote them."""
    settings = json.loads(json.dumps(settings))
    plan = settings["plan"]
    former_plan = {
        "first": plan["initial_forks"],
        "rungs": [{"at": rung["share"], "forks": rung["forks"], "clones": rung["clones"]} for rung in plan["rungs"]],
        "protect": plan["protect_leader"],
        "edge": plan["edge_decades"],
    }
    names = {"fixed factor": "blind", "model quantile": "model"}
    chooser = {**settings["chooser"], "name": names[settings["chooser"]["name"]]}
    renamed = {
        "weights": "of",
        "smoothing_share": "smooth",
        "initial_rates": "first",
        "centred_grid": "centred",
        "judge_by": "look",
    }
    return {renamed.get(name, name): value for name, value in settings.items()} | {
        "plan": former_plan,
        "chooser": chooser,
    }


@pytest.mark.parametrize(
    "strategy", [Dynamic.horizon(), Dynamic.horizon(cost=1.5), Dynamic.horizon(forks=3), Dynamic.greedy(forks=2)]
)
def test_settings_of_forks_have_their_present_names(strategy: Dynamic) -> None:
    present = json.loads(json.dumps(strategy.to_json()))
    assert upgrade_settings({"strategy": former_dynamic(present)}) == {"strategy": present}


def test_the_golden_study_with_forks_has_the_settings_of_its_strategy() -> None:
    created = read_journal(GOLDEN.with_name("journal-1-greedy.jsonl"))[0]
    assert isinstance(created, Created)
    settings = Dynamic.greedy(forks=3, intervals=4).as_begun(created.settings["strategy"]).to_json()
    assert created.settings["strategy"] == json.loads(json.dumps(settings))


@pytest.mark.parametrize(
    ("begun", "now"),
    [
        (Dynamic.horizon(), Dynamic.horizon()),
        (
            Dynamic.greedy(forks=2, intervals=4, min_separation=0, in_sequence=False, alphas=(0.25, 0.75)),
            Dynamic.greedy(forks=2, intervals=4),
        ),
    ],
)
def test_a_study_with_forks_of_format_1_goes_on(begun: Dynamic, now: Dynamic, tmp_path: Path) -> None:
    """Interrupted after a decision, and continued by this version with the same decisions."""
    whole = drive(make(begun, study=tmp_path / "whole"))
    whole.close()
    folder = tmp_path / "former"
    folder.mkdir()
    data = json.loads((tmp_path / "whole" / "study.json").read_text())
    data["settings"]["strategy"] = former_dynamic(data["settings"]["strategy"])
    (folder / "study.json").write_text(json.dumps({**data, "format": 1}))
    lines = (tmp_path / "whole" / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(lines[: len(lines) // 2]))
    drive(make(now, study=folder)).close()
    assert facts(folder) == facts(tmp_path / "whole")


def test_a_setting_that_is_gone_is_dropped_only_at_the_value_that_remains() -> None:
    assert upgrade_settings({"objective": {"every": None, "mode": "min"}}) == {"objective": {"mode": "min"}}
    assert upgrade_settings({"objective": {"every": 7}}) == {"objective": {"every": 7}}
    dynamic = {"strategy": {"strategy": "dynamic", "look": "final", "of": "raw"}}
    assert upgrade_settings(dynamic)["strategy"] == {"strategy": "dynamic", "judge_by": "final", "weights": "raw"}


def test_the_golden_journal_of_format_1_is_read() -> None:
    events = read_journal(GOLDEN)
    report = events[5]
    assert isinstance(report, Report)
    assert (report.fork, report.start, report.stop, report.steps) == (1, 10, 15, (12, 15))
    assert report.failure == Failure("raised", "the value is not finite")
    assert [event for i, event in enumerate(events) if i != 5] == [
        Created({"lr": [1e-4, 1e-1], "steps": 100}),
        Decided(
            1,
            0,
            (because("text", text="two forks start"),),
            {"proposals": 1, "ranking": [{"fork": 0, "value": 1.5}]},
            0.001,
        ),
        Interval(0, None, 0, 10, Schedule.constant(0.1, 100), 1),
        Report(0, 0, 10, (5, 10), {"raw": (2.5, 2.25), "averaged": (2.6, 2.3)}),
        Interval(1, 0, 10, 20, SCHEDULE, 2),
        Dropped(0, 20, because("text", text="behind")),
        Finished(None, 100, None, "raw"),
    ]


def test_a_clone_has_no_line_of_its_own_any_more() -> None:
    assert upgrade_event({"event": "cloned", "fork": 1, "parent": 0, "step": 10}) is None


@pytest.mark.parametrize(
    ("sentence", "failure"),
    [
        ("the value at step 1,200 is not finite", Failure("not finite", step=1200)),
        (
            "this interval cost 3 workers and was given up: died",
            Failure("lost", "this interval cost 3 workers and was given up: died"),
        ),
        ("ValueError: bad (train.py, line 3)", Failure("raised", "ValueError: bad (train.py, line 3)")),
    ],
)
def test_failures_get_a_kind(sentence: str, failure: Failure) -> None:
    assert Failure.from_json(upgrade_failure(sentence)) == failure
