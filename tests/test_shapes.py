"""Base shapes: known values, the range of factors, JSON, and messages for wrong arguments."""

import json

import numpy as np
import pytest

from paceline import InputError, Schedule
from paceline.shapes import (
    SHAPES,
    Constant,
    Cosine,
    Exponential,
    Joined,
    Linear,
    OneCycle,
    Recorded,
    Shape,
    WarmupStableDecay,
    shape_from_json,
    shape_of,
)

EXAMPLES: list[Shape] = [
    Constant(),
    Linear(),
    Cosine(final=0.1),
    Exponential(),
    WarmupStableDecay(),
    WarmupStableDecay(decay=0.7, power=2),
    OneCycle(),
    Recorded((0, 500, 999), (0.5, 1.0, 0.1)),
    Joined(WarmupStableDecay(decay=0.7), 1200, 400, Cosine()),
    Joined(Joined(Constant(), 900, 100, Recorded((0, 700), (1.0, 0.5))), 1100, 400, Linear()),
]


@pytest.mark.parametrize("shape", EXAMPLES, ids=lambda shape: shape.name)
def test_factors_lie_in_zero_one_and_reach_one(shape: Shape) -> None:
    factor = shape.factor(np.arange(1000.0), 1000)
    assert np.all((factor > 0) & (factor <= 1 + 1e-12))
    assert factor.max() == pytest.approx(1.0, abs=1e-3)


def rates(shape: Shape, *steps: int) -> list[float]:
    """Rates of a run of 100 steps with peak 1."""
    schedule = Schedule.of(shape, 1.0, 100)
    return [schedule(step) for step in steps]


def test_known_values() -> None:
    assert rates(Constant(), 0, 99) == [1.0, 1.0]
    assert rates(Linear(), 25) == pytest.approx([0.75])
    assert rates(Cosine(), 50) == pytest.approx([0.5])
    assert rates(Exponential(), 0, 50) == pytest.approx([1.0, 0.1])
    assert rates(WarmupStableDecay(warmup=0.1, decay=0.5), 0, 4, 9, 50, 75) == pytest.approx([0.1, 0.5, 1, 1, 0.5])
    assert rates(OneCycle(), 0, 30) == pytest.approx([0.04, 1.0])
    assert rates(Joined(Linear(), 200, 50, Linear()), 0, 40, 49, 50, 75) == pytest.approx([1, 0.8, 0.755, 0.5, 0.25])
    assert rates(Recorded((10, 30), (1.0, 0.01)), 0, 10, 20, 30, 90) == pytest.approx([1, 1, 0.1, 0.01, 0.01])


def test_an_exponential_falls_by_the_same_ratio_at_each_step_to_its_final_fraction() -> None:
    factor = Exponential(final=0.05).factor(np.arange(101.0), 100)
    np.testing.assert_allclose(factor[1:] / factor[:-1], 0.05**0.01)
    assert factor[100] == pytest.approx(0.05)


@pytest.mark.parametrize("shape", EXAMPLES, ids=lambda shape: shape.name)
def test_json_returns_an_equal_shape(shape: Shape) -> None:
    again = shape_from_json(json.loads(json.dumps(shape.to_json())))
    assert again == shape
    assert hash(again) == hash(shape)


def test_serialised_forms_do_not_change() -> None:
    assert Exponential().to_json() == {"name": "exponential", "final": 0.01}
    assert WarmupStableDecay().to_json() == {
        "name": "warmup_stable_decay",
        "warmup": 0.02,
        "decay": 0.2,
        "final": 0.0,
        "power": 1.0,
    }
    assert OneCycle().to_json() == {"name": "one_cycle", "warmup": 0.3, "start": 0.04, "final": 4e-6}
    assert Recorded((0,), (1.0,)).to_json() == {"name": "recorded", "steps": (0,), "factors": (1.0,)}


def test_shapes_go_by_name() -> None:
    assert shape_of("one_cycle") == OneCycle()
    assert shape_of(Linear(final=0.5)) == Linear(final=0.5)
    for name in set(SHAPES) - {"recorded", "joined"}:
        assert shape_of(name).name == name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(final=2.0), r"Linear.final must lie in \[0, 1\], got 2.0"),
        (lambda: Exponential(final=0.0), r"Exponential.final must lie in \[1e-300, 1\], got 0.0"),
        (lambda: OneCycle(start=0.0), r"OneCycle.start must lie in \[1e-300, 1\], got 0.0"),
        (lambda: WarmupStableDecay(warmup=0.6, decay=0.6), r"at most 1, got 0.6 \+ 0.6: shorten one"),
        (lambda: Recorded((0, 1), (1.0,)), "as many factors as steps, got 2 and 1"),
        (lambda: Recorded((0,), (0.0,)), r"Recorded factors must lie in \(0, inf\)"),
        (lambda: shape_of("cosin"), "unknown base shape 'cosin': use one of constant, cosine"),
        (lambda: shape_of("recorded"), "unknown base shape 'recorded'"),
        (lambda: shape_of("joined"), "unknown base shape 'joined'"),
        (lambda: shape_from_json({"name": "step"}), "unknown base shape 'step' in JSON"),
    ],
)
def test_wrong_arguments_say_what_to_do(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
