"""TensorBoard's event files, read without TensorBoard: the scalars of a run by tag.

A file is a row of records: length (8 bytes), checksum of the length (4), data, checksum of the data (4). Data is a
protobuf message, of which only steps, tags and single numbers are read here:

Event { step = 2, summary = 5 { value = 1 { tag = 1, simple_value = 2, tensor = 8 { dtype = 1, content = 4, .. } } } }

A record that the writer had not finished ends the file. A checksum of a length that does not hold says that this is
another kind of file, or a damaged one.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import InputError

Scalars = dict[str, list[tuple[int, float]]]
MARK = "tfevents"  # in the name of every event file
_FLOATS = {1: "f", 2: "d"}  # of tensors, by their type
_VALUES = {1: 5, 2: 6}  # the field that holds them, by their type


def event_files(path: Path) -> list[Path]:
    """The event files in a folder and below, or the one that is named; sorted by name, which is by time."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if MARK in file.name and file.is_file())


def read_scalars(files: Sequence[Path]) -> Scalars:
    """(step, value) by tag, in the order written."""
    found: Scalars = {}
    for file in files:
        for record in _records(file):
            try:
                step, values = _event(record)
            except (IndexError, ValueError, struct.error) as error:
                raise InputError(f"{file} holds a record that is no event: it is damaged, restore it") from error
            for tag, value in values:
                found.setdefault(tag, []).append((step, value))
    return found


def _records(file: Path) -> Iterator[memoryview]:
    content, at = memoryview(file.read_bytes()), 0
    while at + 12 <= len(content):
        head = content[at : at + 8]
        if masked_checksum(head) != struct.unpack_from("<I", content, at + 8)[0]:
            where = "from its start" if at == 0 else f"at byte {at:,}"
            raise InputError(
                f"{file} does not read as TensorBoard events {where}: expected an event file, whose name holds "
                f"{MARK!r}; where it is one it is damaged, restore it"
            )
        begin = at + 12
        at = begin + struct.unpack("<Q", head)[0] + 4
        if at > len(content):
            return  # cut off while it was written
        yield content[begin : at - 4]


def _event(record: memoryview) -> tuple[int, list[tuple[str, float]]]:
    """Step and scalars of an event."""
    step, values = 0, list[tuple[str, float]]()
    for number, content in _fields(record):
        if number == 2:
            step = content
        elif number == 5:
            values += [scalar for key, value in _fields(content) if key == 1 for scalar in _scalar(value)]
    return step, values


def _scalar(value: memoryview) -> list[tuple[str, float]]:
    """Tag and number, nothing where the value is a picture, a histogram or the like."""
    tag, number = "", None
    for key, content in _fields(value):
        if key == 1:
            tag = bytes(content).decode(errors="replace")
        elif key == 2:
            (number,) = struct.unpack("<f", content)
        elif key == 8:
            number = _single(content)
    return [] if number is None else [(tag, number)]


def _single(tensor: memoryview) -> float | None:
    """The number in a tensor of one float."""
    fields = dict(_fields(tensor))
    kind = fields.get(1)
    if kind not in _FLOATS:
        return None
    content, form = fields.get(4) or fields.get(_VALUES[kind]), "<" + _FLOATS[kind]
    return struct.unpack(form, content)[0] if content is not None and len(content) == struct.calcsize(form) else None


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Numbers and contents of a message's fields: whole numbers as such, all else as bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            content, at = _varint(message, at)
            yield number, content
            continue
        if wire == 2:
            size, at = _varint(message, at)
        else:
            size = {1: 8, 5: 4}.get(wire, 0)
        if (size == 0 and wire != 2) or at + size > len(message):
            raise ValueError(f"field {number} of kind {wire} has no end")
        yield number, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, low ones first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a whole number of more than 64 bits")


def _table() -> list[int]:
    table = list[int]()
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC = _table()


def masked_checksum(content: "bytes | memoryview") -> int:
    """CRC-32C, rotated and shifted as event files hold it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
