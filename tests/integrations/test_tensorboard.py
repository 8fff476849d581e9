"""Event files: those that TensorBoard wrote, and those of a tiny writer with everything that may be in them."""

import struct
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.integrations.tensorboard import event_files, masked_checksum, read_scalars

GOLDEN = Path(__file__).parents[1] / "golden"


def field(number: int, content: bytes | float | int) -> bytes:
    """One field of a protobuf message: bytes, a float of four bytes, or a whole number."""
    if isinstance(content, bytes):
        return varint(number << 3 | 2) + varint(len(content)) + content
    if isinstance(content, float):
        return varint(number << 3 | 5) + struct.pack("<f", content)
    return varint(number << 3) + varint(content)


def varint(value: int) -> bytes:
    head = b""
    while value > 0x7F:
        head, value = head + bytes([value & 0x7F | 0x80]), value >> 7
    return head + bytes([value])


def scalar(tag: str, value: float) -> bytes:
    return field(1, field(1, tag.encode()) + field(2, float(value)))


def tensor(tag: str, dtype: int, number: int, content: bytes) -> bytes:
    shape = field(2, b"")
    return field(
        1, field(1, tag.encode()) + field(9, b"scalars") + field(8, field(1, dtype) + shape + field(number, content))
    )


def event(step: int, *values: bytes) -> bytes:
    wall_time = varint(1 << 3 | 1) + struct.pack("<d", 1.5e9)
    return wall_time + field(2, step) + field(5, b"".join(values))


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_checksum(head)) + data + struct.pack("<I", masked_checksum(data))


def write_events(path: Path, series: dict[str, list[tuple[int, float]]]) -> Path:
    """An event file with these scalars."""
    path.parent.mkdir(parents=True, exist_ok=True)
    version = field(3, b"brain.Event:2")
    points = [(step, tag, value) for tag, column in series.items() for step, value in column]
    path.write_bytes(b"".join(map(record, [version, *(event(step, scalar(tag, v)) for step, tag, v in points)])))
    return path


def test_the_checksum_is_that_of_the_standard() -> None:
    crc = 0xE3069283  # CRC-32C of the digits 1 to 9, as published
    assert masked_checksum(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_what_tensorboard_wrote_is_read() -> None:
    losses = [(s, pytest.approx(3 / (1 + s / 10), rel=1e-6)) for s in range(0, 60, 10)]
    simple = read_scalars([GOLDEN / "events.out.tfevents.simple"])
    assert set(simple) == {"train/loss", "train/learning_rate"}
    assert simple["train/loss"] == losses
    tensors = read_scalars([GOLDEN / "events.out.tfevents.tensor"])
    assert tensors == {"val/loss": losses, "lr-AdamW": [(s, pytest.approx(0.1)) for s in range(0, 60, 10)]}


def test_every_form_of_a_number_is_read_and_pictures_are_not(tmp_path: Path) -> None:
    picture = field(1, field(1, b"image") + field(4, field(1, 32) + field(4, b"png")))
    values = [
        scalar("simple", 0.5),
        tensor("content", 1, 4, struct.pack("<f", 0.25)),
        tensor("float", 1, 5, struct.pack("<f", 0.125)),
        tensor("double", 2, 6, struct.pack("<d", 0.1)),
        tensor("text", 7, 8, b"words"),
        tensor("vector", 1, 4, struct.pack("<ff", 1.0, 2.0)),
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
    with pytest.raises(InputError, match="holds a record that is no event: it is damaged"):
        read_scalars([path])


def test_files_are_found_in_folders_below(tmp_path: Path) -> None:
    for name in ("a/events.out.tfevents.2", "a/events.out.tfevents.1", "b/c/events.out.tfevents.3"):
        write_events(tmp_path / name, {})
    (tmp_path / "notes.txt").write_text("")
    assert [file.name[-1] for file in event_files(tmp_path)] == ["1", "2", "3"]
