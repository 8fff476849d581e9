"""A state comes back as it was, whatever it is made of, and files of earlier versions are read."""

import math
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from paceline.errors import TrainingError
from paceline.training import (
    load_checkpoint,
    pack_checkpoint,
    require_checkpoint,
    save_checkpoint,
    unpack_checkpoint,
    write_checkpoint,
)


def test_tensors_of_every_kind_come_back(tmp_path: Path) -> None:
    image = torch.randn(2, 3, 4, 5)
    state = {
        "layouts": [image, image.to(memory_format=torch.channels_last), image.transpose(1, 3), image[::2, :, 1]],
        "types": {i: torch.ones(3).to(kind) for i, kind in enumerate((torch.bfloat16, torch.float64, torch.bool))},
        "generators": [torch.ones(3, dtype=torch.uint8), torch.get_rng_state(), torch.Generator().get_state()],
        "sizes": (torch.tensor(7), torch.zeros(0, 4), nn.Parameter(torch.ones(2))),
        "odd": [math.inf, -0.0, {"nested": (1, [2.5])}],
    }
    save_checkpoint(state, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")
    assert [torch.equal(a, b) for a, b in zip(state["layouts"], back["layouts"], strict=True)] == [True] * 4
    assert back["layouts"][1].is_contiguous(memory_format=torch.channels_last)
    assert {i: x.dtype for i, x in back["types"].items()} == {i: x.dtype for i, x in state["types"].items()}
    assert [x.shape for x in back["sizes"]] == [(), (0, 4), (2,)]
    assert back["odd"] == state["odd"]
    for before, after in zip(state["generators"][1:], back["generators"][1:], strict=True):
        torch.Generator().set_state(after)  # crashes, or reads others' bytes, where they are part of something larger
        assert torch.equal(before, after)


def test_a_module_finds_its_versions_again(tmp_path: Path) -> None:
    norm = nn.BatchNorm1d(3)
    save_checkpoint({"model": norm.state_dict()}, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")["model"]
    assert isinstance(back, OrderedDict)
    assert back._metadata == norm.state_dict()._metadata


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    torch.save({"done": 3, "model": {"w": torch.ones(2)}}, tmp_path / "old.pt")
    assert load_checkpoint(tmp_path / "old.pt")["done"] == 3


def test_odd_values_are_kept_as_they_are(tmp_path: Path) -> None:
    state = {("a", 1): 2, "bytes": b"x", "size": torch.Size([2, 3]), "type": torch.float32, "set": {1}, "complex": 1j}
    state["numpy"], state["sparse"] = np.float64(0.5), torch.eye(3).to_sparse()
    save_checkpoint({"state": state}, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")["state"]
    assert {k: v for k, v in back.items() if k != "sparse"} == {k: v for k, v in state.items() if k != "sparse"}
    assert torch.equal(back["sparse"].to_dense(), torch.eye(3))


def test_a_state_travels_as_the_bytes_of_its_file(tmp_path: Path) -> None:
    state = {"weights": torch.arange(3.0), "step": 5}
    content = pack_checkpoint(state)
    write_checkpoint(tmp_path / "sent.pt", lambda file: file.write(content))
    for back in (unpack_checkpoint(content, tmp_path / "sent.pt"), load_checkpoint(tmp_path / "sent.pt")):
        assert torch.equal(back["weights"], state["weights"])
        assert back["step"] == 5


def test_a_checkpoint_that_is_not_there_or_damaged_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "s.pt"
    with pytest.raises(TrainingError, match=r"s\.pt is missing: restore it from a copy"):
        load_checkpoint(path)
    save_checkpoint({"weights": torch.ones(100)}, path)
    assert require_checkpoint(path) == path
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(TrainingError, match=r"s\.pt cannot be read .*: restore it from a copy"):
        load_checkpoint(path)


@pytest.mark.parametrize("wrapped", [False, True], ids=["by the disk", "by torch"])
def test_a_failed_write_leaves_nothing_and_says_what_to_do(wrapped: bool, tmp_path: Path) -> None:
    def write(file) -> None:
        try:
            raise OSError(28, "No space left on device")
        except OSError:
            if wrapped:
                raise RuntimeError("unexpected pos 64 vs 0")  # noqa: B904  as torch's writer does
            raise

    with pytest.raises(TrainingError, match=r"could not be written \(No space left on device\): free disk space"):
        write_checkpoint(tmp_path / "s.pt", write)
    assert not list(tmp_path.iterdir())


def test_other_errors_of_a_write_are_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no disk involved"):
        write_checkpoint(tmp_path / "s.pt", lambda file: (_ for _ in ()).throw(RuntimeError("no disk involved")))
