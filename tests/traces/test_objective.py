"""Objective: both directions of the map between the user's units and the model's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import InputError, Objective

positive = st.floats(1e-12, 1e12)


@given(positive, st.sampled_from(["min", "max"]), st.sampled_from(["identity", "log"]))
def test_to_user_inverts_to_model(value: float, mode, transform) -> None:
    objective = Objective(mode=mode, transform=transform)
    assert objective.to_user(objective.to_model(np.array([value])))[0] == pytest.approx(value, rel=1e-12)


@given(positive, positive)
def test_bigger_is_better_inside_the_model(a: float, b: float) -> None:
    for mode in ("min", "max"):
        for transform in ("identity", "log"):
            inside = Objective(mode=mode, transform=transform).to_model(np.array([a, b]))
            better = a < b if mode == "min" else a > b
            assert better == (inside[0] > inside[1]) or inside[0] == inside[1]


def test_the_log_of_a_negative_value_is_refused() -> None:
    with pytest.raises(InputError, match="smallest value of -2"):
        Objective(transform="log").to_model(np.array([1.0, -2.0]))
