"""Studies of earlier versions are continued, although this version writes fewer settings."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from paceline.study.former_settings import without_former_settings

from paceline import tune_tasks, warm_start
from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy.multitask import Effort
from paceline.strategy.newtask import Thought

EFFORT = Effort(outer=4, inner=4, rough=4, screened=8, starts=1, moves=1, draws=8, grid=3, sweeps=1)
THOUGHT = Thought(places=6, models=2, draws=4, grid=3, sweeps=1, climbs=1)


def quadratic(noise: float) -> QuadraticTraining:
    return QuadraticTraining(Quadratic(noise, dims=20), 3, every=4)


def write_former(study: Path, look: str) -> None:
    """Settings as version 0.1.0 wrote them."""
    data = json.loads((study / "study.json").read_text())
    data["settings"]["strategy"]["look"] = look
    data["settings"]["strategy"]["family"]["objective"]["every"] = None
    (study / "study.json").write_text(json.dumps(data))


def test_a_setting_that_is_gone_is_left_out_only_at_the_value_that_remains() -> None:
    assert without_former_settings({"objective": {"every": None, "mode": "min"}}) == {"objective": {"mode": "min"}}
    other = {"strategy": {"strategy": "new task", "look": "next"}}
    assert without_former_settings(other) == other
    dynamic = {"strategy": {"strategy": "dynamic", "look": "final"}}
    assert without_former_settings(dynamic) == dynamic


def test_a_new_task_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    tasks = {name: partial(quadratic, noise) for name, noise in (("calm", 0.2), ("wild", 2.0))}
    quick = {"intervals": 2, "dims": 1, "link": "linear", "effort": EFFORT}
    tune_tasks(tasks, steps=40, lr=(0.01, 1.5), budget=2, batch=2, study=tmp_path / "family", **quick)

    def begin(study: Path):
        return warm_start(tmp_path / "family", partial(quadratic, 1.0), study=study, thought=THOUGHT)

    value = begin(tmp_path / "new").value
    shutil.copytree(tmp_path / "new", tmp_path / "other")
    write_former(tmp_path / "new", "final")
    assert begin(tmp_path / "new").value == value
    write_former(tmp_path / "other", "next")
    with pytest.raises(InputError, match="other settings"):
        begin(tmp_path / "other")
