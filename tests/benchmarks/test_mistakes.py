"""Mistakes of a user's code, as the benchmark makes them. With Ray, see tests/runner/ray."""

from collections.abc import Callable

import pytest

from benchmarks._mistaken_training import MISTAKES, PLACES, missing_key
from benchmarks.mistakes import raise_first, raise_later

pytestmark = pytest.mark.filterwarnings("ignore:streams")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_comes_back_as_it_was_raised(mistake: Callable[[], None]) -> None:
    kind, is_own, line, begun = raise_first("local", "loss", mistake)
    assert (kind, is_own, line, begun) == (MISTAKES[mistake][0].__name__, True, "traceback", 1)


@pytest.mark.parametrize("runner", ["local", "streams"])
@pytest.mark.parametrize("place", PLACES)
def test_one_fork_tries_in_each_place(place: str, runner: str) -> None:
    begun = 0 if place == "factory" else 1
    assert raise_first(runner, place, missing_key) == ("KeyError", True, "traceback", begun)


@pytest.mark.parametrize("runner", ["local", "streams"])
def test_later_it_is_the_failure_of_one_fork(runner: str) -> None:
    assert raise_later(runner, missing_key) == (1, True, True)
