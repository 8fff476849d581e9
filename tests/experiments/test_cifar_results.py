"""The published results of the CIFAR-10 experiment: every study is there, and its journal opens."""

from experiments._cifar_results import CifarResults
from experiments._cifar_studies import all_units


def test_every_study_of_the_experiment_has_a_row_and_a_journal() -> None:
    results = CifarResults()
    units = results.units()
    waiting = {(unit.depth, unit.method) for unit in all_units() if unit not in units}
    assert {method.split(",")[0] for _, method in waiting} == {"paper", "greedy"}  # not run since they changed
    assert {unit.name for unit in units} == set(results.archive.names)
    rows = results.rows()
    assert [row.unit.name for row in rows] == sorted(unit.name for unit in units)
    for row in (rows[0], rows[-1]):
        assert row.study.finished is not None
        assert row.study.state.done_steps == round(row.row["cost"] * row.row["steps"])
