"""Normals: moments, negatives, batches."""

import pytest
import torch

from paceline.model.normals import Normals


def drawn(draws: int, intervals: int = 2) -> Normals:
    return Normals.draw(1, draws, intervals, torch.Generator().manual_seed(0))


def test_unit_moments_are_exact_and_left_alone_if_there_are_too_few_draws() -> None:
    normals = drawn(40).with_unit_moments()
    columns = torch.cat([normals.latent[0], normals.effect[0], normals.start[:, None]], 1)
    torch.testing.assert_close(columns.mT @ columns / 40, torch.eye(5).double())
    few = drawn(4)
    assert few.with_unit_moments() is few


def test_opposite_pairs_have_mean_zero() -> None:
    normals = drawn(5)
    pairs = normals.concat(normals.negate())
    assert pairs.latent.shape == (1, 10, 2)
    for part in (pairs.latent, pairs.effect, pairs.start):
        assert float(part.sum()) == pytest.approx(0.0, abs=1e-12)


def test_batches_share_the_same_normals() -> None:
    normals = drawn(5)
    batch = normals.expand(3, 2)
    assert batch.latent.shape == (1, 3, 2, 5, 2)
    assert torch.equal(batch.latent[:, 2, 1], normals.latent)
    assert torch.equal(batch.start[0, 1], normals.start)
    assert normals.unsqueeze().latent.shape == (1, 5, 1, 2)
    assert drawn(6).reshape(2, 3).effect.shape == (1, 2, 3, 2)


def test_zeros_are_no_randomness() -> None:
    normals = Normals.zeros(2, 4, 3)
    assert normals.latent.shape == normals.effect.shape == (2, 3, 4)
    assert float(normals.latent.abs().sum() + normals.start.abs().sum()) == 0.0
