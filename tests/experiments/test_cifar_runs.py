"""The whole path of the CIFAR-10 experiment on a few images: from the list of studies to its tables."""

from pathlib import Path

import pytest

from experiments import _cifar_report as report
from experiments._cifar_results import CifarResults
from experiments._cifar_runs import complete, next_unit, run
from experiments._cifar_studies import Unit
from tests.experiments.few_images import few_images

EXPONENTIALS = [f"exponential 0.001 x{factor}" for factor in (0.5, 0.63, 0.77, 0.9)]


def test_studies_leave_journals_final_measures_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = CifarResults(tmp_path / "results")
    units = [Unit(8, "exponential 1e-3", 0), Unit(8, "horizon 2.3, validation error", 0)]
    for unit, epochs in zip(units, (10, 40), strict=True):
        run(unit, tmp_path / "runs", results, few_images(), epochs=epochs)
    assert not list((tmp_path / "runs").rglob("*.pt"))
    complete([], tmp_path / "runs", results, jobs=0)  # packs the journals
    assert not list(results.archive.unpacked.rglob("*.jsonl"))
    assert results.units() == set(units)
    studies = results.of_network(8)
    assert studies[0].row["cost"] == 4.0
    assert studies[1].row["cost"] <= 2.3
    groups = report.grouped(report.ends(studies))
    assert sorted(groups) == [*EXPONENTIALS, "horizon 2.3, validation error"]
    ends = [end for seeds in groups.values() for end in seeds.values()]
    assert all(0 <= end.value("test accuracy", of) <= 1 for end in ends for of in ("raw", "averaged", "chosen"))
    report.print_ends(groups)
    report.print_bars(groups, 8)
    printed = capsys.readouterr().out
    assert all(name in printed for name in groups)


def test_studies_are_taken_from_a_list_that_may_be_edited(tmp_path: Path) -> None:
    todo = tmp_path / "todo.txt"
    todo.write_text("56|horizon 2.3, training loss|1\n\n20|paper, d = 10|0\n")
    assert next_unit(todo) == Unit(56, "horizon 2.3, training loss", 1)
    todo.write_text("20|PB2|2\n" + todo.read_text())
    assert [next_unit(todo) for _ in range(3)] == [Unit(20, "PB2", 2), Unit(20, "paper, d = 10", 0), None]


@pytest.mark.parametrize("limit", [None, 60.0])
def test_with_and_without_a_limit_it_waits_for_its_workers(limit: float | None, tmp_path: Path) -> None:
    complete([], tmp_path / "runs", CifarResults(tmp_path / "results"), jobs=1, limit=limit)
    assert not (tmp_path / "runs" / "todo.txt").read_text()
