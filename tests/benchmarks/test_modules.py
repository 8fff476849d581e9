"""Every benchmark and experiment can be imported: names of the package that they use exist."""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("benchmarks", "experiments")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name != "__init__.py"
]
OPTIONAL = ("dadaptation", "optuna", "prodigyopt", "schedulefree", "botorch", "ray", "playwright", "gpytorch")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", MODULES)
def test_it_can_be_imported(name: str) -> None:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in OPTIONAL:
            raise
        pytest.skip(f"{error.name} is not installed")
