"""A schedule as a Python function is the schedule."""

import ast
import bisect
import math

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.shapes import Constant, Cosine, Exponential, Joined, Linear, OneCycle, Recorded, Shape, WarmupStableDecay
from paceline.traces import Schedule
from paceline.views.export import PART_ROWS, as_csv, as_python, csv_parts

BASES: list[Shape] = [
    Constant(),
    Linear(),
    Linear(final=0.2),
    Cosine(final=0.1),
    Exponential(),
    WarmupStableDecay(warmup=0.02, decay=0.7),
    WarmupStableDecay(warmup=0.1, decay=0.3, final=0.05, power=2.0),
    OneCycle(),
    OneCycle(warmup=0.0),
    Recorded((0,), (0.5,)),
    Recorded((10, 40, 90), (0.5, 1.0, 0.01)),
]


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("multipliers", [[0.1], [0.1, 0.1, 0.03]], ids=str)
def test_python_equals_the_schedule_at_every_step(base: Shape, multipliers: list[float]) -> None:
    schedule = Schedule(multipliers, [0, 20, 55, 97][: len(multipliers) + 1], 100, base)
    text = as_python(schedule)
    assert len(text.splitlines()) <= 12
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.Import)]
    assert {name.name for node in imports for name in node.names} <= {"math", "bisect"}
    names: dict = {}
    exec(text, names)
    steps = np.arange(-1, 101)
    assert [names["learning_rate"](int(step)) for step in steps] == pytest.approx(schedule(steps), rel=1e-11)


def test_a_run_that_went_back_twice_is_a_function_too() -> None:
    first = Joined(WarmupStableDecay(0.02, 0.7), 120, 20, Cosine())
    schedule = Schedule([0.1, 0.1, 0.03], [0, 20, 55, 97], 100, Joined(first, 110, 55, Constant()))
    names: dict = {}
    exec(as_python(schedule), names)
    assert [names["learning_rate"](step) for step in range(100)] == pytest.approx(schedule(np.arange(100)), rel=1e-11)


def test_a_table_holds_every_rate() -> None:
    schedule = Schedule([0.1, 0.02], [0, 3, 6], base="cosine")
    rows = as_csv(schedule).splitlines()
    assert rows[0] == "step,rate"
    assert [tuple(map(float, row.split(","))) for row in rows[1:]] == [(t, schedule(t)) for t in range(6)]


STATEMENTS = (ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Import, ast.alias, ast.Return, ast.If)
STATEMENTS += (ast.Assign, ast.Expr)
EXPRESSIONS = (
    ast.BinOp,
    ast.IfExp,
    ast.Compare,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.UnaryOp,
    ast.unaryop,
    ast.Name,
    ast.Constant,
)
EXPRESSIONS += (ast.List, ast.Tuple, ast.operator, ast.cmpop, ast.expr_context)
CALLED = {"min", "max", "len", "math.cos", "math.exp", "bisect.bisect_right"}


def check_code(text: str) -> None:
    """The code of an export holds arithmetic, a docstring and the functions above, and nothing else."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        assert isinstance(node, STATEMENTS + EXPRESSIONS), ast.dump(node)
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) in CALLED
        if isinstance(node, ast.Constant):
            assert type(node.value) in (int, float) or str(node.value).startswith("Learning rate of update")
        if isinstance(node, ast.alias):
            assert node.name in ("math", "bisect")


def call_code(text: str, step: int) -> float:
    """The rate of exported code, which runs without any builtin but those it needs."""
    modules = {"math": math, "bisect": bisect}
    code = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("import "))
    names: dict = {"__builtins__": {"min": min, "max": max, "len": len}, **modules}
    exec(code, names)
    return names["learning_rate"](step)


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_python_is_arithmetic_alone(base: Shape) -> None:
    text = as_python(Schedule([0.1, 0.03], [0, 20, 97], 100, base))
    check_code(text)
    assert call_code(text, 30) > 0


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    base = WarmupStableDecay(np.float64(0.1), np.float64(0.5), np.float64(0.0), np.float64(2.0))
    check_code(as_python(Schedule([0.1], [0, 100], base=base)))


def test_a_table_of_a_very_long_schedule_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match="at most 10,000,000 steps, got 50,000,000: use --format json or"):
        as_csv(Schedule.constant(0.1, 50_000_000))


def test_a_table_is_made_in_parts() -> None:
    schedule = Schedule([0.1, 0.2], [0, PART_ROWS + 1, 2 * PART_ROWS + 1])
    parts = [*csv_parts(schedule)]
    assert [part.count("\n") for part in parts] == [1, PART_ROWS, PART_ROWS, 1]
    assert "".join(parts) == as_csv(schedule)
    assert f"\n{PART_ROWS},0.1\n{PART_ROWS + 1},0.2\n" in "".join(parts)
