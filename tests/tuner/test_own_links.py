"""A user's own link: in a study, after a restart, in a family and its warm start; and what is said without it."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from paceline import InputError, Study, tune_tasks, warm_start
from paceline.model import register_link
from paceline.strategy import Dynamic, MultiTask
from paceline.tuner import load_family
from tests.model.example_links import Creeping, unregister
from tests.quick_families import BOUNDS, QUICK, QUICK_NEW_TASK, STEPS, quadratic
from tests.tuner.toy_study import drive, facts, make

MISSING = r"no link is registered as 'creeping'.*register your own first, with paceline.model.register_link\(YourLink\)"


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register_link(Creeping)
    yield
    unregister("creeping")


def greedy(link: "str | Creeping" = "creeping") -> Dynamic:
    return Dynamic.greedy(forks=2, intervals=4, link=link)


def test_a_study_with_it_goes_on_after_a_restart_as_if_there_had_been_none(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    drive(make(greedy(Creeping()), study=whole)).close()
    drive(make(greedy(), study=cut), most=5).close()
    assert json.loads((cut / "study.json").read_text())["settings"]["strategy"]["chooser"]["link"] == "creeping"
    unregister("creeping")  # a new process
    assert Study.open(cut).finished is None  # reading needs no link
    with pytest.raises(InputError, match=MISSING):
        greedy()
    register_link(Creeping())
    drive(make(greedy(), study=cut)).close()
    assert facts(cut) == facts(whole)


def test_an_instance_that_is_not_registered_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    other = Creeping(base=5.0)
    with pytest.raises(InputError, match=r"the link 'creeping' is not registered.*register_link\(Creeping\) first"):
        greedy(other)
    with pytest.raises(InputError, match=r"the link 'creeping' is not registered"):
        tune_tasks({"a": quadratic_of(1.0)}, steps=STEPS, lr=BOUNDS, study=tmp_path, **{**QUICK, "link": other})
    assert not (tmp_path / "study.json").exists()


def test_a_family_with_it_and_its_warm_start_go_on_once_it_is_registered(tmp_path: Path) -> None:
    family, new = tmp_path / "family", tmp_path / "new"
    tasks = {"calm": quadratic_of(0.2), "wild": quadratic_of(2.0)}
    settings = {**QUICK, "link": Creeping(), "budget": 3, "batch": 2}
    tune_tasks(tasks, steps=STEPS, lr=BOUNDS, study=family, **settings)
    again = MultiTask.from_json(Study.open(family).settings["strategy"])
    assert again.settings.link == "creeping"
    first = warm_start(family, quadratic_of(1.0), study=new, **QUICK_NEW_TASK)
    unregister("creeping")  # a new process
    for read in (
        lambda: load_family(family),
        lambda: tune_tasks(tasks, steps=STEPS, lr=BOUNDS, study=family, **{**settings, "link": "creeping"}),
        lambda: warm_start(family, quadratic_of(1.0), **QUICK_NEW_TASK),
        lambda: warm_start(family, quadratic_of(1.0), study=new, **QUICK_NEW_TASK),
    ):
        with pytest.raises(InputError, match=MISSING):
            read()
    register_link(Creeping)
    assert warm_start(family, quadratic_of(1.0), study=new, **QUICK_NEW_TASK).schedule == first.schedule


def quadratic_of(noise: float) -> partial:
    return partial(quadratic, noise)
