"""What a command line names, and each way to name it wrongly."""

import sys
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.factory import error_place, load_factory, load_tasks

MODULE = """
class Group:
    @staticmethod
    def make():
        return "a training of the group"

def make():
    return "a training"

def broken():
    return 1 / 0

tasks = {"a": make}
def more_tasks():
    return {"a": make, "b": make}
rate = 0.1
wrong_tasks = {"a": make, 3: make}
no_tasks = {}
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, under a name that no other test uses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"factories_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    return name


def test_factories_are_found_in_the_current_folder(module: str) -> None:
    assert load_factory(f"{module}:make")() == "a training"
    assert load_factory(f"{module}:Group.make")() == "a training of the group"


def test_tasks_are_a_dict_or_a_function_that_returns_one(module: str) -> None:
    assert list(load_tasks(f"{module}:tasks")) == ["a"]
    assert list(load_tasks(f"{module}:more_tasks")) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}", "expected module:factory, got '.*': write train:make for `make` in train.py"),
        (":make", "expected module:factory"),
        ("{}:", "expected module:factory"),
        ("nowhere_at_all:make", "no module 'nowhere_at_all', neither in this folder .* without .py"),
        ("{}.py:make", "importing '.*.py' failed|no module '.*.py'"),
        ("{}:maek", "has no 'maek': it defines broken, make, more_tasks"),
        ("{}:rate", "rate is a float, not a function: name a function without arguments"),
    ],
)
def test_wrong_factories_are_refused(name: str, message: str, module: str) -> None:
    with pytest.raises(InputError, match=message):
        load_factory(name.format(module))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rate", "expected a dict of names and functions .*, got 0.1"),
        ("no_tasks", "expected a dict of names and functions .*, got {}"),
        ("wrong_tasks", "got 3: <function make"),
        ("broken", r"broken raised ZeroDivisionError: division by zero at .*\.py, line 11"),
    ],
)
def test_wrong_tasks_are_refused(name: str, message: str, module: str) -> None:
    with pytest.raises(InputError, match=message):
        load_tasks(f"{module}:{name}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_like_this", "failed at .*line 1: No module named 'nothing_like_this'"),
        ("x = 1\nraise RuntimeError('no GPU')", "failed at .*line 2: RuntimeError: no GPU"),
        ("def make(:", "failed.*: SyntaxError"),
        ("x = 1", "has no 'make': it defines no function"),
    ],
)
def test_modules_that_cannot_be_imported_say_where(code: str, message: str, module: str) -> None:
    Path(f"other_{module}.py").write_text(code)
    with pytest.raises(InputError, match=message):
        load_factory(f"other_{module}:make")


def test_an_error_without_a_place_of_the_users_has_none() -> None:
    assert error_place(ValueError("never raised")) == ""
