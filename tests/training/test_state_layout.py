"""A state is flattened into a few large tensors and restored from them."""

import math
from collections import OrderedDict

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from paceline.errors import TrainingError
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


def test_tensors_of_one_type_share_a_large_one() -> None:
    state = {"a": torch.ones(2, 3), "b": [torch.zeros(4)], "count": torch.tensor(7), "inf": math.inf}
    flat = flatten_state(state)
    assert flat["float32"].tolist() == [1.0] * 6 + [0.0] * 4
    assert flat["int64"].tolist() == [7]
    back = restore_state(flat)
    assert back["a"].untyped_storage().data_ptr() == flat["float32"].untyped_storage().data_ptr()
    assert (back["b"][0].tolist(), int(back["count"]), back["inf"]) == ([0.0] * 4, 7, math.inf)


def test_channels_last_images_stay_so() -> None:
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    back = restore_state(flatten_state({"image": image}))["image"]
    assert back.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(back, image)


def test_metadata_of_a_module_is_kept() -> None:
    state = nn.BatchNorm1d(3).state_dict()
    back = restore_state(flatten_state({"model": state}))["model"]
    assert isinstance(back, OrderedDict)
    assert back._metadata == state._metadata


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.array(2.5),
        np.zeros((0, 3), np.float32),
        np.array([1 + 2j, 3]),
        np.array([True, False]),
        np.arange(3, dtype=np.uint64) + 2**63,
        np.array([1.5, -0.0], dtype=">f2"),
        np.array(["left", "right"]),
        np.array(["2026-11-19"], dtype="datetime64[D]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_numpys_arrays_come_back_as_they_were(array: np.ndarray) -> None:
    back = restore_state(flatten_state({"inside": [array]}))["inside"][0]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.int8])
def test_jaxs_arrays_come_back_as_numpys(dtype) -> None:
    array = jnp.arange(6).astype(dtype).reshape(2, 3)
    back = restore_state(flatten_state({"weights": array}))["weights"]
    assert isinstance(back, np.ndarray)
    assert back.dtype == array.dtype
    assert bool((jnp.asarray(back) == array).all())


@pytest.mark.parametrize("array", [np.array([object()]), np.zeros(2, dtype=[("a", int)])])
def test_arrays_of_anything_else_are_named(array) -> None:
    with pytest.raises(TrainingError, match=r"state\['model'\] is an array of .*: a state must hold arrays of numbers"):
        flatten_state({"model": array})


def test_an_array_with_a_meaning_of_its_own_is_named() -> None:
    with pytest.raises(TrainingError, match=r"state\['random'\] is a PRNGKeyArray: a state must hold only"):
        flatten_state({"random": jax.random.key(0)})


def test_what_cannot_be_kept_is_named() -> None:
    with pytest.raises(TrainingError, match=r"state\['model'\]\[1\] is a object: a state must hold only tensors"):
        flatten_state({"model": [1, object()]})


def test_modules_without_a_shape_say_what_to_do() -> None:
    with pytest.raises(TrainingError, match="has no shape yet: run one batch through the model"):
        flatten_state(nn.LazyLinear(3).state_dict())
