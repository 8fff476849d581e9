"""Models of drawn runs, fitted once for all tests of families."""

import pytest
import torch

from paceline import Trace, TraceModel
from paceline.settings import SearchBudget
from paceline.strategy.multitask import best_schedules
from tests.strategy.multitask.drawn_runs import SPACE, drawn_family, drawn_runs


@pytest.fixture(scope="session", params=["linear", "exponential"])
def model(request: pytest.FixtureRequest) -> TraceModel:
    """Of three runs of each task."""
    return drawn_family(request.param).fit(drawn_runs(3, request.param))


@pytest.fixture(scope="session")
def reference(model: TraceModel) -> torch.Tensor:
    """Optimistic schedules."""
    search = SearchBudget(draws=64, grid=5, gradient_steps=0)
    return best_schedules(model, 0.9, SPACE.lengths(model), search, generator=torch.Generator().manual_seed(0))


@pytest.fixture(scope="session")
def two_runs() -> list[Trace]:
    """Two of each task."""
    return drawn_runs(2)


@pytest.fixture(scope="session")
def small_model(two_runs: list[Trace]) -> TraceModel:
    """Of these."""
    return drawn_family().fit(two_runs)
