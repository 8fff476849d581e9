"""A fork draws from its own random state and leaves the global one alone."""

import random
from pathlib import Path

import numpy as np
import torch

from paceline.training import (
    Randomness,
    get_random_state,
    load_checkpoint,
    preserve_random_state,
    save_checkpoint,
    set_random_state,
)


def draw() -> tuple[float, float, float]:
    """A number from each of the global generators."""
    return float(torch.rand(())), float(np.random.rand()), random.random()  # noqa: NPY002


def test_forks_draw_what_they_would_draw_alone() -> None:
    first, second = Randomness(), Randomness()
    first.reseed(1)
    second.reseed(2)
    before = get_random_state()
    turns = {1: [], 2: []}
    for _ in range(3):
        for seed, fork in ((1, first), (2, second)):
            with fork.activate():
                turns[seed].append(draw())
    assert torch.equal(before["torch"], torch.get_rng_state())
    for seed, drawn in turns.items():
        alone = Randomness()
        alone.reseed(seed)
        with alone.activate():
            assert [draw() for _ in range(3)] == drawn
    assert turns[1] != turns[2]


def test_the_global_state_returns_after_an_error() -> None:
    expected = get_random_state()
    for block in (Randomness().activate, preserve_random_state):
        try:
            with block():
                draw()
                raise KeyError
        except KeyError:
            pass
    set_random_state(expected)
    first = draw()
    set_random_state(expected)
    with preserve_random_state():
        draw()
    assert draw() == first


def test_a_state_survives_its_checkpoint(tmp_path: Path) -> None:
    random.gauss(0.0, 1.0)  # Python's generator then holds a number for the next call
    state = get_random_state()
    expected = (draw(), random.gauss(0.0, 1.0))
    save_checkpoint({"generators": state}, tmp_path / "state.pt")
    set_random_state(load_checkpoint(tmp_path / "state.pt")["generators"])
    assert (draw(), random.gauss(0.0, 1.0)) == expected
