"""Gradient ascent: it finds a known top, stays inside [0, 1], and never ends below where it has been."""

import pytest
import torch

from paceline.strategy.ascent import ascend

TOPS = torch.tensor([[0.3, 0.6], [0.8, 1.4]], dtype=torch.float64)
SCALES = torch.tensor([1.0, 1e-6], dtype=torch.float64)
BEGIN = torch.full((2, 2), 0.5, dtype=torch.float64)


def hill(x: torch.Tensor) -> torch.Tensor:
    """Two hills of very different heights; the second has its top outside."""
    return -SCALES * (x - TOPS).square().sum(1)


@pytest.mark.parametrize("normalise", [False, True])
def test_every_schedule_climbs_its_own_hill(normalise: bool) -> None:
    with torch.no_grad():
        x = ascend(hill, BEGIN, 60, normalise=normalise)
    torch.testing.assert_close(x, TOPS.clamp(0, 1), atol=0.05, rtol=0)
    assert not x.requires_grad


def test_every_schedule_stays_in_its_box() -> None:
    highest = torch.tensor([0.2, 0.7], dtype=torch.float64)
    x = ascend(hill, BEGIN.clamp(max=0.2), 60, highest=highest)
    torch.testing.assert_close(x, torch.minimum(TOPS, highest[:, None]), atol=0.05, rtol=0)
    assert bool((x <= highest[:, None]).all())


def test_the_best_point_counts_not_the_last() -> None:
    """With steps that leap over the top."""
    x = ascend(hill, TOPS.clamp(0, 1), 3, step_size=0.9)
    torch.testing.assert_close(x, TOPS.clamp(0, 1))
    torch.testing.assert_close(ascend(hill, BEGIN, 0), BEGIN)
