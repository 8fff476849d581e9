"""The CIFAR-10 experiment on a handful of made-up images, and its tables from the results that are kept."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import _cifar
from benchmarks._report import table
from experiments import _cifar_report as report
from experiments._cifar_studies import METHODS, Unit, experiment, run
from experiments._cifar_training import PENALTY, Data, Images, network, training
from experiments.cifar import RESULTS, complete, taken


def images(count: int, seed: int) -> Images:
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(10, (count,), generator=generator)
    return Images(torch.randn(count, 3, 8, 8, generator=generator) + 0.3 * y[:, None, None, None], y)


@pytest.fixture(scope="module")
def few() -> Data:
    return Data(images(128, 0), images(64, 1), images(64, 2))


def test_a_study_keeps_its_journal_and_what_every_schedule_is_worth(few: Data, tmp_path: Path) -> None:
    unit = Unit(8, "exponential 1e-3", 0)
    run(unit, tmp_path / "runs", tmp_path / "results", few, epochs=10)
    studies = report.kept(tmp_path / "results", 8)
    assert [one.row["method"] for one in studies] == ["exponential 1e-3"]
    groups = report.grouped(report.ends(studies))
    assert sorted(groups) == [f"exponential 0.001 x{factor}" for factor in (0.5, 0.63, 0.77, 0.9)]
    assert studies[0].row["cost"] == 4.0
    assert all(0 <= seeds[0].value("test accuracy", of) <= 1 for seeds in groups.values() for of in ("raw", "averaged"))
    assert not list((tmp_path / "runs").rglob("*.pt"))


def test_within_a_seed_runs_are_the_same_and_only_kernels_are_penalised(few: Data) -> None:
    one, other = (training(few, 8, 3, "batches", 50) for _ in range(2))
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(a, b)
    kernels, others = one.optimizer.param_groups
    assert kernels["weight_decay"] == 2 * PENALTY
    assert others["weight_decay"] == 0
    assert {p.ndim for p in kernels["params"]} == {4}
    assert sum(p.numel() for group in (kernels, others) for p in group["params"]) == sum(
        p.numel() for p in network(8, 3).parameters()
    )


def test_the_price_of_a_grid_is_that_of_the_best_of_so_many_on_validation() -> None:
    def end(error: float, accuracy: float) -> dict[int, report.End]:
        values = {"raw": {"validation error": error, "test accuracy": accuracy}}
        return {0: report.End("", 0, 1.0, "raw", values)}

    groups = {"a": end(0.1, 0.9), "b": end(0.2, 0.8), "c": end(0.3, 0.7)}
    assert report.grid_cost(groups, 0.79, 0) == 1  # the mean of all three is 0.8
    assert report.grid_cost(groups, 0.86, 0) == 2  # (2 * 0.9 + 0.8) / 3 = 0.867
    assert report.grid_cost(groups, 0.9, 0) == 3
    assert not report.grid_cost(groups, 0.91, 0) <= 3


def test_every_method_has_a_strategy_and_tables_are_made_of_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert all(method.make().to_json() for method in METHODS.values())
    studies = report.kept(RESULTS, 20)
    groups = report.grouped(report.ends(studies))
    report.print_ends(groups)
    report.print_bars(groups, 20)
    print(table(["claim", "verdict", "measured"], report.claims(groups, studies)))
    said = capsys.readouterr().out
    assert "beats every constant rate" in said
    assert all(name in said for name in groups)


def test_studies_are_taken_from_a_list_that_may_be_edited(tmp_path: Path) -> None:
    todo = tmp_path / "todo.txt"
    todo.write_text("56|horizon 2.3, training loss|1\n\n20|greedy, d = 10|0\n")
    assert taken(todo) == Unit(56, "horizon 2.3, training loss", 1)
    todo.write_text("20|PB2|2\n" + todo.read_text())
    assert [taken(todo) for _ in range(3)] == [Unit(20, "PB2", 2), Unit(20, "greedy, d = 10", 0), None]


@pytest.mark.parametrize("limit", [None, 60.0])
def test_without_a_limit_it_waits_for_its_workers(limit: float | None, tmp_path: Path) -> None:
    complete([], tmp_path / "runs", tmp_path / "results", jobs=1, limit=limit)
    assert not (tmp_path / "runs" / "todo.txt").read_text()


def test_every_study_of_the_experiment_is_kept() -> None:
    assert [unit.name for unit in experiment() if not (RESULTS / unit.name / "row.json").exists()] == []


def test_cifar_10_is_read_as_its_authors_publish_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="expected CIFAR-10's folder cifar-10-batches-bin"):
        _cifar.stored()
    there = tmp_path / "cifar-10-batches-bin"
    there.mkdir()
    rows = np.random.default_rng(0).integers(0, 256, (6, 2, 3073), dtype=np.uint8)
    rows[..., 0] %= 10
    for name, batch in zip([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], rows, strict=True):
        batch.tofile(there / f"{name}.bin")
    x, y, x_test, y_test = _cifar.cifar10.__wrapped__("cpu")
    assert (len(y), x.shape, y_test.tolist()) == (10, (10, 3, 32, 32), rows[5, :, 0].tolist())
    red = (rows[5, 1, 1:1025].astype(float) / 255 - 0.4914) / 0.2470
    assert np.allclose(x_test[1, 0].flatten().numpy(), red, atol=1e-5)
