"""A family study that several tests look at."""

import pytest

from paceline import Study
from tests.quick_families import tune_quickly


@pytest.fixture(scope="session")
def family(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return tune_quickly(study=tmp_path_factory.mktemp("studies") / "family", batch=2)
