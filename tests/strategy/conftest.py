"""What is known of the made-up family, fitted once for all tests of new tasks."""

import pytest

from paceline import Trace, TraceModel
from tests.strategy.made_family import FAMILY, known_runs


@pytest.fixture(scope="session")
def known() -> tuple[Trace, ...]:
    return known_runs()


@pytest.fixture(scope="session")
def model(known: tuple[Trace, ...]) -> TraceModel:
    return FAMILY.fit(known)
