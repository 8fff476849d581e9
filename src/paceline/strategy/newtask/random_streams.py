"""Randomness of a new task: a stream for each purpose, so that a decision is the same whenever it is made again."""

import torch

from paceline.strategy.base import History

PROBE_MODELS, PROBE_DRAWS, PRIOR = 0, 1, 2
POSTERIOR, SEARCH, MODELS = 3, 20, 40  # plus the change point that they are of
SPACING = 1_000_003


def generator(history: History, stream: int) -> torch.Generator:
    """The generator of one stream."""
    return torch.Generator().manual_seed(SPACING * stream + history.goal.seed)
