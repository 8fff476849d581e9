import numpy as np
import torch

from paceline.testing.run_comparison import different_entry, different_observation, different_weights

STATE = {"model": {"0.weight": torch.tensor([1.0, 2.0])}, "steps": [1, 2, {"done": 3}], "name": "adam", "nothing": None}


def changed(**entries) -> dict:
    return {**STATE, **entries}


def test_equal_states_have_no_difference() -> None:
    again = {"model": {"0.weight": torch.tensor([1.0, 2.0])}, "steps": (1, 2, {"done": 3}), "name": "adam"}
    assert different_entry(STATE, {**again, "nothing": None}, 0.0) == ""


def test_the_first_entry_that_differs_is_named() -> None:
    assert different_entry(STATE, changed(model={"0.weight": torch.tensor([1.0, 2.1])}), 0.0) == "model.0.weight"
    assert different_entry(STATE, changed(model={"0.weight": torch.tensor([1.0])}), 0.5) == "model.0.weight"
    assert different_entry(STATE, changed(model={"0.weight": torch.tensor([1, 2])}), 0.5) == "model.0.weight"
    assert different_entry(STATE, changed(steps=[1, 2, {"done": 4}]), 0.5) == "steps.2.done"
    assert different_entry(STATE, changed(name="sgd"), 0.0) == "name"
    assert different_entry(STATE, changed(more=1), 0.0) == "more"
    assert different_entry({"a": np.zeros(2)}, {"a": np.ones(2)}, 0.1) == "a"


def test_close_numbers_are_equal_within_the_tolerance() -> None:
    near = changed(model={"0.weight": torch.tensor([1.0, 2.001])})
    assert different_entry(STATE, near, 1e-2) == ""
    assert different_entry({"a": 1.0}, {"a": 1.001}, 1e-2) == ""
    assert different_entry({"a": np.ones(2)}, {"a": np.full(2, 1.001)}, 1e-2) == ""
    assert different_entry({"a": np.array(["left"])}, {"a": np.array(["right"])}, 1e-2) == "a.0"
    assert different_entry({"a": 1.0}, {"a": 1.001}, 1e-4) == "a"


def test_nan_equals_nan() -> None:
    nan = float("nan")
    assert different_entry({"a": nan}, {"a": nan}, 0.0) == ""
    assert different_entry({"a": torch.tensor([nan])}, {"a": torch.tensor([nan])}, 0.0) == ""


def test_weights_are_tensors_of_floating_point_numbers() -> None:
    other = changed(steps=[5], name="sgd", generator=torch.tensor([1, 2]))
    assert different_weights(STATE, other, 0.0) == ""
    other["model"] = {"0.weight": torch.tensor([1.0, 3.0])}
    assert different_weights(STATE, other, 0.0) == "model.0.weight"


def test_observations_are_compared_at_steps_that_both_runs_have() -> None:
    run = [(5, 1.0), (10, {"raw": 2.0, "averaged": 3.0})]
    assert different_observation(run, [(5, {"raw": 1.0}), (7, 9.0)], 0.0) == ""
    assert different_observation(run, [(5, 1.5)], 0.0) == "step 5 has 1 and 1.5 (raw weights)"
    assert different_observation(run, [(10, 2.0)], 0.0) == "step 10 has a value of averaged weights in one run only"
