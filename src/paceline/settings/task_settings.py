"""Settings that name tasks: what their runs cost, which of them are wanted, and the budget that is spent on them."""

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import Any, cast

from paceline.errors import InputError


def check_costs(costs: Any) -> dict[str, float]:
    """The cost of a run of each task, as plain positive numbers."""
    given = dict(cast("Mapping[str, Any]", costs)) if isinstance(costs, Mapping) else {}
    if not given:
        raise InputError(f"costs must give the cost of a run by task, got {costs!r}: pass {{'a': 1, 'b': 0.25}}")
    for task, cost in given.items():
        if not _is_positive(cost):
            raise InputError(f"costs[{task!r}] must be a positive number, got {cost!r}")
    return {task: _plain(given[task]) for task in sorted(given)}


def check_budget(budget: Any, costs: "Mapping[str, float] | None") -> float:
    """The budget: a whole number of runs, or any positive cost if runs have costs."""
    if not _is_positive(budget):
        raise InputError(f"budget must be a positive number, got {budget!r}: it is how many runs are made in all")
    plain = _plain(budget)
    if costs is None and not isinstance(plain, int):
        raise InputError(f"budget must be a whole number of runs, got {budget!r}: a share of a run needs costs=")
    return plain


def check_wanted(wanted: Any) -> tuple[str, ...]:
    """Names of the wanted tasks, at least one, each once."""
    names = tuple(cast("Sequence[Any]", wanted)) if isinstance(wanted, Sequence) and not isinstance(wanted, str) else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"wanted must be names of tasks, each once, got {wanted!r}: pass ['a']")
    return cast("tuple[str, ...]", names)


def _is_positive(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and isfinite(value) and float(value) > 0


def _plain(value: Any) -> float:
    """A number that goes to JSON; whole ones as ints, so that 20 and 20.0 are the same setting."""
    return int(value) if value == int(value) else float(value)
