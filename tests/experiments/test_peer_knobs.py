"""Main knobs of the peers that are no tuners."""

from experiments._peer_knobs import KNOBS


def test_a_budget_of_n_runs_makes_n_runs() -> None:
    assert all(len(knobs) == budget for knob in KNOBS.values() for budget, knobs in knob.items())
