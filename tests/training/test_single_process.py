"""Processes of a launcher are refused; those that a training starts itself are not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed, multiprocessing

from paceline import InputError, PaceLR, tune
from paceline.problems import Quadratic, QuadraticTraining
from paceline.training import check_single_process


def pace() -> PaceLR:
    return PaceLR(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1), lr=(1e-3, 1.0), steps=100)


def test_a_launcher_of_several_processes_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=r"PaceLR works in one process, got 2 .* with `python` on one device"):
        pace()
    with pytest.raises(InputError, match=r"paceline.tune works in one process, got 2 .* unset WORLD_SIZE"):
        tune(lambda: QuadraticTraining(Quadratic(0.1)), steps=100, lr=(1e-3, 1.0), study=tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("announced", ["1", "", "many"])
def test_a_single_process_of_a_launcher_works(monkeypatch: pytest.MonkeyPatch, announced: str) -> None:
    monkeypatch.setenv("WORLD_SIZE", announced)
    check_single_process("PaceLR")
    assert pace().in_range_test


def rank(index: int, folder: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=index, world_size=2)
    try:
        check_single_process("PaceLR")
        message = "it went on"
    except InputError as error:
        message = str(error)
    Path(folder, str(index)).write_text(message)
    distributed.barrier()
    distributed.destroy_process_group()


def test_a_process_group_is_refused_in_its_processes_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    multiprocessing.start_processes(rank, (str(tmp_path),), nprocs=2, start_method="spawn")
    assert all("PaceLR works in one process, got 2" in (tmp_path / str(index)).read_text() for index in range(2))
    check_single_process("PaceLR")


class Parallel(QuadraticTraining):
    """A training that announces processes of its own, as launchers do."""

    def advance(self, *args: object) -> Iterator[object]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WORLD_SIZE", "2")
            yield from super().advance(*args)  # pyright: ignore


def test_a_training_may_have_processes_of_its_own() -> None:
    assert tune(lambda: Parallel(Quadratic(0.1)), steps=100, lr=(1e-3, 1.0), cost=1).value is not None
