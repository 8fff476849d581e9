"""A state comes back as it was, whatever it is made of, and files of earlier versions are read."""

import math
import os
import random
import shutil
from collections import OrderedDict
from hashlib import sha256
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
from paceline.training.state_layout import flatten_state


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
    torch.save(flatten_state({"done": 4}), tmp_path / "5-40.pt")  # without fork, step and SHA-256
    assert load_checkpoint(tmp_path / "5-40.pt")["done"] == 4


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "3-40.pt"
    save_checkpoint({"weights": torch.randn(20), "step": 40}, path)
    whole = path.read_bytes()
    places = random.Random(0).sample(range(8 * len(whole)), 60) + list(
        range(8 * len(whole) - 8 * 130, 8 * len(whole), 37)
    )
    for place in places:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(TrainingError, match=r"cannot be read \((it is not what was written|its end is damaged)"):
            load_checkpoint(path)
        with pytest.raises(TrainingError, match="cannot be read"):
            unpack_checkpoint(bytes(damaged), path)


def test_a_checkpoint_of_another_fork_or_step_is_refused(tmp_path: Path) -> None:
    save_checkpoint({"step": 40}, tmp_path / "3-40.pt")
    for name in ("4-40.pt", "3-20.pt"):
        shutil.copy(tmp_path / "3-40.pt", tmp_path / name)
        with pytest.raises(TrainingError, match=r"is of fork 3 at step 40: files were swapped or renamed, restore it"):
            load_checkpoint(tmp_path / name)
    shutil.copy(tmp_path / "3-40.pt", tmp_path / "best.pt")  # a name of the user's own
    assert load_checkpoint(tmp_path / "best.pt") == {"step": 40}


def test_torch_reads_a_checkpoint_too(tmp_path: Path) -> None:
    save_checkpoint({"weights": torch.ones(3)}, tmp_path / "3-40.pt")
    assert torch.equal(torch.load(tmp_path / "3-40.pt", weights_only=True)["float32"], torch.ones(3))


def test_a_large_state_is_hashed_beside_the_write_and_the_read(tmp_path: Path) -> None:
    state = {"weights": torch.arange(2_500_000, dtype=torch.float32)}
    save_checkpoint(state, tmp_path / "0-1.pt")
    content, line = (tmp_path / "0-1.pt").read_bytes().rsplit(b',"sha256":"', 1)
    assert line == sha256(content).hexdigest().encode() + b'"}\n'
    assert torch.equal(load_checkpoint(tmp_path / "0-1.pt")["weights"], state["weights"])
    for place in (5_000_000, -3):
        damaged = bytearray((tmp_path / "0-1.pt").read_bytes())
        damaged[place] ^= 1
        (tmp_path / "0-2.pt").write_bytes(damaged)
        with pytest.raises(TrainingError, match=r"0-2\.pt cannot be read \(it"):
            load_checkpoint(tmp_path / "0-2.pt")


def test_the_folder_of_a_study_that_was_moved_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"gone was deleted or moved while the study ran: move it back"):
        save_checkpoint({"step": 40}, tmp_path / "gone" / "checkpoints" / "3-40.pt")
    assert not list(tmp_path.iterdir())


def test_odd_values_are_kept_as_they_are(tmp_path: Path) -> None:
    state = {("a", 1): 2, "bytes": b"x", "size": torch.Size([2, 3]), "type": torch.float32, "set": {1}, "complex": 1j}
    state["numpy"], state["sparse"] = np.float64(0.5), torch.eye(3).to_sparse()
    save_checkpoint({"state": state}, tmp_path / "s.pt")
    back = load_checkpoint(tmp_path / "s.pt")["state"]
    assert {k: v for k, v in back.items() if k != "sparse"} == {k: v for k, v in state.items() if k != "sparse"}
    assert torch.equal(back["sparse"].to_dense(), torch.eye(3))


def test_a_state_travels_as_the_bytes_of_its_file(tmp_path: Path) -> None:
    state = {"weights": torch.arange(3.0), "step": 5}
    content = pack_checkpoint(state, tmp_path / "sent.pt")
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


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.pt")
    with pytest.raises(TrainingError, match="should be a file, got something else: restore it from a copy"):
        load_checkpoint(tmp_path / "s.pt")
