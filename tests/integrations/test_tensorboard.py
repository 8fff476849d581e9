"""Event files that TensorBoard wrote, and those of a tiny writer with everything that may be in them."""

import struct
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util.tensor_util import make_ndarray

from paceline.errors import InputError
from paceline.integrations import tensorboard
from paceline.integrations.tensorboard import event_files, read_scalars
from tests.integrations.event_files import event, field, record, scalar, tensor, write_events

GOLDEN = Path(__file__).parents[1] / "golden"


def test_what_tensorboard_wrote_is_read() -> None:
    losses = [(s, pytest.approx(3 / (1 + s / 10), rel=1e-6)) for s in range(0, 60, 10)]
    simple = read_scalars([GOLDEN / "events.out.tfevents.simple"])
    assert set(simple) == {"train/loss", "train/learning_rate"}
    assert simple["train/loss"] == losses
    tensors = read_scalars([GOLDEN / "events.out.tfevents.tensor"])
    assert tensors == {"val/loss": losses, "lr-AdamW": [(s, pytest.approx(0.1)) for s in range(0, 60, 10)]}


@pytest.mark.parametrize("name", ["simple", "tensor"])
def test_it_reads_what_the_loader_of_tensorboard_reads(name: str) -> None:
    expected: dict[str, list[tuple[int, float]]] = {}
    for loaded in EventFileLoader(str(GOLDEN / f"events.out.tfevents.{name}")).Load():
        for value in loaded.summary.value:
            expected.setdefault(value.tag, []).append((loaded.step, float(make_ndarray(value.tensor))))
    assert read_scalars([GOLDEN / f"events.out.tfevents.{name}"]) == expected


def test_without_tensorboard_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    tensorboard._tensorboard.cache_clear()
    with pytest.raises(InputError, match=r"needs tensorboard: pip install paceline\[tensorboard\]"):
        read_scalars([GOLDEN / "events.out.tfevents.simple"])


def test_every_form_of_a_number_is_read_and_pictures_are_not(tmp_path: Path) -> None:
    picture = field(1, field(1, b"image") + field(4, field(1, 32) + field(4, b"png")))
    values = [
        scalar("simple", 0.5),
        tensor("content", 1, 4, struct.pack("<f", 0.25)),
        tensor("float", 1, 5, struct.pack("<f", 0.125)),
        tensor("double", 2, 6, struct.pack("<d", 0.1)),
        tensor("text", 7, 8, b"words"),
        tensor("vector", 1, 4, struct.pack("<ff", 1.0, 2.0), sizes=(2,)),
        picture,
    ]
    graph = field(4, b"\x00" * 300)
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(record(graph) + record(event(2**40, *values)))
    step = 2**40
    assert read_scalars([path]) == {
        "simple": [(step, 0.5)],
        "content": [(step, 0.25)],
        "float": [(step, 0.125)],
        "double": [(step, 0.1)],
    }


@pytest.mark.parametrize("missing", [1, 4, 10, 20, 30])
def test_a_last_record_that_was_cut_off_is_left_out(missing: int, tmp_path: Path) -> None:
    path = write_events(tmp_path / "events.out.tfevents.1", {"loss": [(1, 3.0), (2, 2.0)]})
    path.write_bytes(path.read_bytes()[:-missing])
    assert read_scalars([path]) == {"loss": [(1, 3.0)]}


def test_other_files_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"step,loss\n1,3.0\n2,2.0\n")
    with pytest.raises(InputError, match="does not read as TensorBoard events from its start: expected an event file"):
        read_scalars([path])
    good = write_events(path, {"loss": [(1, 3.0), (2, 2.0)]}).read_bytes()
    path.write_bytes(good[:40] + b"x" + good[41:])
    with pytest.raises(InputError, match="damaged, restore it"):
        read_scalars([path])
    path.write_bytes(record(b"\x2a\x7f\x00"))
    with pytest.raises(InputError, match="holds a record that is not an event: it is damaged"):
        read_scalars([path])


def test_files_are_found_in_folders_below(tmp_path: Path) -> None:
    for name in ("a/events.out.tfevents.2", "a/events.out.tfevents.1", "b/c/events.out.tfevents.3"):
        write_events(tmp_path / name, {})
    (tmp_path / "notes.txt").write_text("")
    assert [file.name[-1] for file in event_files(tmp_path)] == ["1", "2", "3"]
