"""A state comes back as it was, whatever it is made of, and files of earlier versions are read."""

import math
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from paceline.errors import TrainingError
from paceline.training import load_checkpoint, save_checkpoint
from paceline.training.state_layout import flatten_state, restore_state

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.text() | st.integers()
STATES = st.dictionaries(
    st.text(),
    st.recursive(PLAIN, lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner)),
)


@given(STATES)
def test_plain_values_come_back_as_they_were(state: dict) -> None:
    assert restore_state(flatten_state(state)) == state


def test_tensors_of_every_kind_come_back(tmp_path: Path) -> None:
    image = torch.randn(2, 3, 4, 5)
    state = {
        "layouts": [image, image.to(memory_format=torch.channels_last), image.transpose(1, 3), image[::2, :, 1]],
        "types": {i: torch.ones(3).to(kind) for i, kind in enumerate((torch.bfloat16, torch.float64, torch.bool))},
        "generators": [torch.ones(3, dtype=torch.uint8), torch.get_rng_state(), torch.Generator().get_state()],
        "sizes": (torch.tensor(7), torch.zeros(0, 4), nn.Parameter(torch.ones(2))),
        "odd": [math.inf, -0.0, {"nested": (1, [2.5])}],
    }
    save_checkpoint(state, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")
    assert [torch.equal(a, b) for a, b in zip(state["layouts"], back["layouts"], strict=True)] == [True] * 4
    assert back["layouts"][1].is_contiguous(memory_format=torch.channels_last)
    assert {i: x.dtype for i, x in back["types"].items()} == {i: x.dtype for i, x in state["types"].items()}
    assert [x.shape for x in back["sizes"]] == [(), (0, 4), (2,)]
    assert back["odd"] == state["odd"]
    for before, after in zip(state["generators"][1:], back["generators"][1:], strict=True):
        torch.Generator().set_state(after)  # crashes, or reads others' bytes, where they are part of something larger
        assert torch.equal(before, after)


def test_a_module_finds_its_versions_again(tmp_path: Path) -> None:
    norm = nn.BatchNorm1d(3)
    save_checkpoint({"model": norm.state_dict()}, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")["model"]
    assert isinstance(back, OrderedDict)
    assert back._metadata == norm.state_dict()._metadata


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    torch.save({"done": 3, "model": {"w": torch.ones(2)}}, tmp_path / "old.pt")
    assert load_checkpoint(tmp_path / "old.pt")["done"] == 3


def test_what_cannot_be_kept_is_named() -> None:
    with pytest.raises(TrainingError, match=r"state\['model'\]\[1\] is a object: a state must hold only tensors"):
        flatten_state({"model": [1, object()]})


def test_odd_values_are_kept_as_they_are(tmp_path: Path) -> None:
    state = {("a", 1): 2, "bytes": b"x", "size": torch.Size([2, 3]), "type": torch.float32, "set": {1}, "complex": 1j}
    state["numpy"], state["sparse"] = np.float64(0.5), torch.eye(3).to_sparse()
    save_checkpoint({"state": state}, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")["state"]
    assert {k: v for k, v in back.items() if k != "sparse"} == {k: v for k, v in state.items() if k != "sparse"}
    assert torch.equal(back["sparse"].to_dense(), torch.eye(3))


def test_modules_without_a_shape_say_what_to_do() -> None:
    with pytest.raises(TrainingError, match="has no shape yet: run one batch through the model"):
        flatten_state(nn.LazyLinear(3).state_dict())
