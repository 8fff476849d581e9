"""A schedule as a Python function is the schedule."""

import ast

import numpy as np
import pytest

from paceline.shapes import Constant, Cosine, Exponential, Joined, Linear, OneCycle, Recorded, Shape, WarmupStableDecay
from paceline.traces import Schedule
from paceline.views.export import as_csv, as_python

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
    text = as_python(schedule, "fork 3 of the study runs/first")
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
    exec(as_python(schedule, "runs/first"), names)
    assert [names["learning_rate"](step) for step in range(100)] == pytest.approx(schedule(np.arange(100)), rel=1e-11)


def test_a_table_holds_every_rate() -> None:
    schedule = Schedule([0.1, 0.02], [0, 3, 6], base="cosine")
    rows = as_csv(schedule).splitlines()
    assert rows[0] == "step,rate"
    assert [tuple(map(float, row.split(","))) for row in rows[1:]] == [(t, schedule(t)) for t in range(6)]


def test_a_name_cannot_become_code() -> None:
    names: dict[str, object] = {}
    origin = 'task """\nraise SystemExit("run")\n""" \\ of a study'
    exec(as_python(Schedule.constant(0.1, 10), origin), names)
    assert names["learning_rate"](3) == 0.1  # type: ignore[operator]
