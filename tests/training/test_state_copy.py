"""Copies of states share nothing with the training that goes on, and are compared bit for bit."""

from collections import OrderedDict

import numpy as np
import torch
from torch import nn

from paceline.training import copy_state, same_states


def state() -> dict:
    return {
        "model": nn.Linear(3, 2).state_dict(),
        "moments": [torch.ones(2), (np.arange(3.0), 4)],
        "step": 7,
        "name": "run",
    }


def test_a_copy_stays_what_it_is() -> None:
    original = state()
    copied = copy_state(original)
    assert same_states(original, copied)
    original["model"]["weight"].add_(1.0)
    original["moments"][1][0][0] = 9.0
    assert not torch.equal(original["model"]["weight"], copied["model"]["weight"])
    assert copied["moments"][1][0][0] == 0.0


def test_kinds_of_containers_are_kept() -> None:
    copied = copy_state(state())
    assert isinstance(copied["model"], OrderedDict)
    assert copied["model"]._metadata == nn.Linear(3, 2).state_dict()._metadata  # pyright: ignore
    assert isinstance(copied["moments"][1], tuple)
    nn.Linear(3, 2).load_state_dict(copied["model"])


def test_states_differ_by_a_bit_a_name_or_a_number() -> None:
    original = state()
    for change in (
        {"step": 8},
        {"moments": [torch.tensor([1.0, 1.0 + 2**-23]), original["moments"][1]]},
        {"more": 1},
    ):
        assert not same_states(original, {**original, **change})
    zeros = {"a": torch.tensor([0.0])}
    assert not same_states(zeros, {"a": torch.tensor([-0.0])})
    assert same_states({"a": torch.tensor([float("nan")])}, {"a": torch.tensor([float("nan")])})
