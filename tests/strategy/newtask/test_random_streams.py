"""Randomness of a new task."""

import torch

from paceline.strategy import History
from paceline.strategy.newtask.random_streams import PRIOR, SEARCH, generator
from tests.strategy.newtask.example_family import GOAL


def test_a_stream_repeats_and_differs_from_the_others() -> None:
    first, again, other = (torch.rand(3, generator=generator(History(GOAL), s)) for s in (SEARCH, SEARCH, PRIOR))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
