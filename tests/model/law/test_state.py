"""The state of a run against its recursion, update by update."""

import numpy as np
import pytest
import torch

from paceline import Schedule
from paceline.model.law.settings import ROWS
from paceline.model.law.state import SPEEDS, SchedulePieces, piece_edges
from paceline.model.linalg import tensor
from tests import reference

STEPS = np.array([1, 2, 7, 40, 41, 150, 299, 300])
EXPONENTS = (0.3, 0.85, 1.7)


def compare(schedule: Schedule, steps: np.ndarray, tolerance: float) -> None:
    """Both ways to S and N agree for several exponents at once."""
    pieces, highest = SchedulePieces.of(schedule, steps), float(schedule(np.arange(schedule.steps)).max())
    largest = float(schedule(np.arange(steps[-1])).sum())
    noise = pieces.noise(tensor(np.array(EXPONENTS)), highest, largest).numpy()
    for g, modes in zip(EXPONENTS, noise, strict=True):
        s, n = reference.state_of_a_run(schedule, steps, g, highest, SPEEDS / largest)
        np.testing.assert_allclose(pieces.rate_sum()[0].numpy(), s, rtol=tolerance)
        np.testing.assert_allclose(modes, n, atol=tolerance)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule.constant(0.05, 300),
        Schedule([0.1, 0.01], [0, 150, 300]),
        Schedule([0.01, 0.3, 1e-3, 0.02], [0, 1, 40, 41, 300]),
    ],
)
def test_constant_pieces_are_exact(schedule: Schedule) -> None:
    compare(schedule, STEPS, 1e-10)
    compare(schedule, STEPS[-1:], 1e-10)


@pytest.mark.parametrize("every", [15, 60])
@pytest.mark.parametrize("shape", ["linear", "cosine", "exponential", "one_cycle", "warmup_stable_decay"])
def test_smooth_schedules_are_close(shape: str, every: int) -> None:
    schedule, steps = Schedule.of(shape, 0.1, 3000), np.arange(every, 3001, every)
    pieces, largest = SchedulePieces.of(schedule, steps), float(schedule(np.arange(3000)).sum())
    s, n = reference.state_of_a_run(schedule, steps, 0.85, 0.1, SPEEDS / largest)
    error = np.abs(pieces.noise(tensor(np.array([0.85])), 0.1, largest).numpy()[0] - n).max(0)
    np.testing.assert_allclose(pieces.rate_sum()[0].numpy(), s, rtol=2e-4)
    assert error[:3].max() < 1e-3
    assert error.max() < 1e-2  # the fastest mode forgets within a few pieces, and sees their corners


def test_long_runs_are_summed_in_blocks() -> None:
    schedule = Schedule([0.1, 0.01, 0.2], [0, 333, 700, 900])
    steps = np.arange(1, 3 * ROWS.block + 50)
    compare(schedule, steps, 1e-10)
    alone = SchedulePieces.of(schedule, steps[-1:]).noise(tensor(np.array([0.8])), 0.2, 50.0)
    among = SchedulePieces.of(schedule, steps).noise(tensor(np.array([0.8])), 0.2, 50.0)
    np.testing.assert_allclose(among[:, -1].numpy(), alone[:, -1].numpy(), rtol=1e-10)


def test_noise_is_differentiable_in_the_rates() -> None:
    lengths, counts = tensor(np.array([10.0, 5.0, 20.0])), torch.tensor([1, 3])

    def noise(rates: torch.Tensor) -> torch.Tensor:
        return SchedulePieces(rates, lengths, counts, rates[[0, 2]]).noise(tensor(np.array([0.5, 1.2])), 0.1, 2.0)

    assert torch.autograd.gradcheck(noise, tensor(np.array([0.1, 0.02, 0.05])).requires_grad_())


def test_pieces_end_at_the_steps_and_at_change_points() -> None:
    edges = piece_edges(Schedule([0.1, 0.2], [0, 33, 100]), np.array([20, 50, 90]))
    assert {0, 20, 33, 50, 90} <= set(edges.tolist())
    assert np.all(np.diff(edges) > 0)
