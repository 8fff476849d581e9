"""How hard to search."""

import pytest

from paceline.errors import InputError
from paceline.settings import InfillBudget, SearchBudget


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"outer_draws": 7}, "outer_draws come in opposite pairs, got 7: pass an even number"),
        ({"inner_draws": 2}, "inner_draws must be at least 4, got 2"),
        ({"starts": 5, "candidates": 2}, "starts are chosen among the candidates, got 5 starts of 2 candidates"),
    ],
)
def test_an_infill_budget_that_cannot_be_used(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        InfillBudget(**values)


def test_a_search_has_draws() -> None:
    with pytest.raises(InputError, match="draws must be at least 1, got 0"):
        SearchBudget(draws=0)
