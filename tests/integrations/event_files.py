"""A tiny writer of TensorBoard's event files, with everything that may be in them."""

import struct
from pathlib import Path

from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c


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


def tensor(tag: str, dtype: int, number: int, content: bytes, *, sizes: tuple[int, ...] = ()) -> bytes:
    shape = field(2, b"".join(field(2, field(1, size)) for size in sizes))
    metadata = field(9, field(1, field(1, b"scalars")))
    return field(1, field(1, tag.encode()) + metadata + field(8, field(1, dtype) + shape + field(number, content)))


def event(step: int, *values: bytes) -> bytes:
    wall_time = varint(1 << 3 | 1) + struct.pack("<d", 1.5e9)
    return wall_time + field(2, step) + field(5, b"".join(values))


def record(data: bytes) -> bytes:
    head = struct.pack("<Q", len(data))
    return head + struct.pack("<I", masked_crc32c(head)) + data + struct.pack("<I", masked_crc32c(data))


def write_events(path: Path, series: dict[str, list[tuple[int, float]]]) -> Path:
    """An event file with these scalars."""
    path.parent.mkdir(parents=True, exist_ok=True)
    version = field(3, b"brain.Event:2")
    points = [(step, tag, value) for tag, column in series.items() for step, value in column]
    path.write_bytes(b"".join(map(record, [version, *(event(step, scalar(tag, v)) for step, tag, v in points)])))
    return path
