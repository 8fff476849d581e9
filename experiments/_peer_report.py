"""Tables of the peers: ratio to hindsight, paired differences, wall time and lines of the user's code."""

from typing import NamedTuple

from benchmarks._runs import RESULTS as BENCHMARKS
from benchmarks._runs import Rows, load
from experiments._peer_knobs import units


class Method(NamedTuple):
    """A row of the tables: what was run for it, of which the best counts, and its budget in units of T."""

    units: tuple[str, ...]
    budget: float


METHODS = {
    "horizon 5": Method(("horizon 5",), 5),
    "horizon 2.3": Method(("horizon 2.3",), 2.3),
    "Optuna 5": Method(("Optuna 5",), 5),
    "Optuna 2.3": Method(("Optuna 2.3",), 2.3),
    **{
        f"{name} x {budget}": Method(tuple(units(name, budget)), budget)
        for name in ("Schedule-Free", "Prodigy", "D-Adaptation", "ReduceLROnPlateau")
        for budget in (1, 2, 5)
    },
    "Ray PBT": Method(("PBT",), 5),
    "Ray PB2": Method(("PB2",), 5),
}


def report(rows: Rows) -> None:
    """Print."""
    print(len(rows), len(load(BENCHMARKS / "horizon.jsonl")))
