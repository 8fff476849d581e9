"""Shapes and types are checked while tests run; the hook must come before the first import of the package."""

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines promise AMX, and have none

from jaxtyping import install_import_hook

import tests.typechecker  # noqa: F401  the hook looks it up by name

install_import_hook("paceline", "tests.typechecker.check")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "paceline", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("paceline")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


LONGEST = (
    "test_drive.py",
    "test_runner.py",
    "test_faults.py",
    "test_kill.py",
    "test_scheduler.py",
    "test_docs.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files, so that all processes end at about the same time, and Ray's two files apart."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))
