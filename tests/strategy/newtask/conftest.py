"""The model of the made-up family, fitted once for all tests of new tasks, and runs that several tests look at."""

import pytest

from paceline import Trace, TraceModel, Tuner
from tests.strategy.newtask.example_family import FAMILY, THOROUGH, NewTaskExample, run_new_task, runs_of_the_family


@pytest.fixture(scope="session")
def known_runs() -> tuple[Trace, ...]:
    return runs_of_the_family()


@pytest.fixture(scope="session")
def model(known_runs: tuple[Trace, ...]) -> TraceModel:
    return FAMILY.fit(known_runs)


@pytest.fixture(scope="session")
def new(known_runs: tuple[Trace, ...], model: TraceModel) -> NewTaskExample:
    return NewTaskExample(known_runs, model)


@pytest.fixture(scope="session")
def fast(new: NewTaskExample) -> Tuner:
    """A whole run of a task like "fast"."""
    return run_new_task(new.strategy(THOROUGH))


@pytest.fixture(scope="session")
def forked(new: NewTaskExample, tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """A whole run with two forks, in a folder."""
    tuner = run_new_task(new.strategy(forks=2), tmp_path_factory.mktemp("studies") / "forked")
    tuner.close()
    return tuner
