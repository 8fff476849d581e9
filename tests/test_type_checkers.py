"""A type checker reports mistakes in the script of a user, who sees the package as it is installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = """\
# pyright: strict
from collections.abc import Iterator
from typing import Any

import paceline


class Training:
    def advance(self, schedule: paceline.Schedule, stop: int) -> Iterator[tuple[int, float]]:
        yield stop, schedule(stop)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


result = paceline.tune(Training, steps=400, lr=(1e-4, 1.0), cost=2.3, study="runs/first")
print(result.value, result.weights().keys())
"""

WRONG = """\
import paceline


class Unfinished:
    def advance(self, schedule: paceline.Schedule, stop: int) -> list[float]:
        return []


def training() -> paceline.TorchTraining: ...


paceline.tune(training, steps="400", lr=(1e-4, 1.0))
paceline.tune(training, steps=400, lr=1e-3)
paceline.tune(training, steps=400)
paceline.tune(training, steps=400, lr=(1e-4, 1.0), costs=2.3)
paceline.tune(training(), steps=400, lr=(1e-4, 1.0))
paceline.tune(Unfinished, steps=400, lr=(1e-4, 1.0))
paceline.tune(training, steps=400, lr=(1e-4, 1.0)).vlaue
"""

MISTAKES = [
    (12, "reportArgumentType", '"steps" of type "int"'),
    (13, "reportArgumentType", '"lr" of type "tuple[float, float]'),
    (14, "reportCallIssue", 'missing for parameter "lr"'),
    (15, "reportCallIssue", 'No parameter named "costs"'),
    (16, "reportArgumentType", '"TorchTraining" is not assignable to type "() -> Training"'),
    (17, "reportArgumentType", '"state_dict" is not present'),
    (18, "reportAttributeAccessIssue", 'attribute "vlaue" for class "Result"'),
]


def errors(folder: Path, script: str) -> list[tuple[int, str, str]]:
    (folder / "script.py").write_text(script)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "script.py"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [(one["range"]["start"]["line"] + 1, one["rule"], " ".join(one["message"].split())) for one in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pyrightconfig.json").write_text("{}")  # the settings of this repository are not those of a user
    return tmp_path


def test_a_right_script_has_no_errors_even_in_strict_mode(folder: Path) -> None:
    assert errors(folder, RIGHT) == []


def test_each_mistake_in_a_call_of_tune_is_reported(folder: Path) -> None:
    found = errors(folder, WRONG)
    assert [(line, rule) for line, rule, _ in found] == [(line, rule) for line, rule, _ in MISTAKES]
    for (*_, message), (*_, expected) in zip(found, MISTAKES, strict=True):
        assert expected in message
