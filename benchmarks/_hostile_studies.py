"""Studies of a stranger: one sound study, with hostile content in one place each.

Every field of study.json and of every kind of event gets text that terminals, browsers and Python would obey, and
values of other types and sizes. Every file of the study becomes what it should not be: a pipe, a folder, a link, a
device, JSON that is nested too deeply, a file without an end. Checkpoints hold pickles that would run code.
"""

import json
import os
import pickle
import shutil
import zipfile
from collections.abc import Callable, Generator
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

MARK = "hacked"  # the name of what code would make: a file, or an attribute of the page
SCRIPT = f"document.body.dataset.{MARK}=1"
TEXTS = (
    f'"><img src=x onerror="{SCRIPT}"><script>{SCRIPT}</script>',
    f"</script><script>{SCRIPT}</script><!--",
    f"\x1b]0;{MARK}\x07\x1b[31m\x9b31m\u202e\x00\r",
    f"__import__('os').system('touch {MARK}')",
    f"../../../../{MARK}",
    f"javascript:{SCRIPT}//%00{{{{7*7}}}}%s%n",
    f"[link=file:///etc/passwd]{MARK}[/link][bold]",
)
VALUES = (-1, 10**30, 1e308, None, [], {}, True, 0.5, "x" * 200_000, [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]], {TEXTS[0]: 1})
DEEP = b"[" * 200_000
Edit = Callable[[Path], None]


class Variation(NamedTuple):
    """A change of a study's folder, under a name that says what it is."""

    name: str
    make: Edit


class Bomb:
    """What pickles to a call that makes a file."""

    def __reduce__(self) -> Any:
        return os.system, (f"touch {MARK}",)


def variations(study: Path) -> list[Variation]:
    """All variations of a study, always in the same order."""
    return [*_fields("study.json", study), *_fields("journal.jsonl", study), *_files(study), *_checkpoints(study)]


def write_variation(study: Path, folder: Path, variation: Variation) -> None:
    """A copy of a study with one change."""
    shutil.copytree(study, folder)
    variation.make(folder)


# fields


def _fields(file: str, study: Path) -> Generator[Variation]:
    """Each field of each kind of line once with every text, if it is one, and else with one; and with other values."""
    texts, values, seen = cycle(TEXTS), cycle(VALUES), set[tuple[str, ...]]()
    lines = [json.loads(line) for line in _lines(study / file)]
    for number, line in enumerate(lines):
        kind = str(line.get("event", ""))
        for path, value in _paths(line):
            if path == ("crc32",):
                continue
            name = kind, *("*" if isinstance(step, int) else step for step in path)
            if name in seen:
                continue
            seen.add(name)
            chosen = [*TEXTS] if isinstance(value, str) else [*islice(texts, 1), *islice(values, 2)]
            for new in chosen:
                label = f"{file} {'.'.join(name)} = {repr(new)[:30]}"
                yield Variation(label, _editing(file, number, path, new))


def _lines(path: Path) -> list[str]:
    """A whole file of JSON, or its lines."""
    text = path.read_text()
    return text.splitlines() if path.suffix == ".jsonl" else [text]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Generator[tuple[tuple[Any, ...], Any]]:
    """Every field below a value; of a list the first item."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, item in items:
        yield (*path, name), item
        yield from _paths(item, (*path, name))


def _editing(file: str, number: int, path: tuple[Any, ...], new: Any) -> Edit:
    def edit(folder: Path) -> None:
        lines = [json.loads(line) for line in _lines(folder / file)]
        place = lines[number]
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = new
        write = _sealed if file.endswith("l") else lambda line: json.dumps(line, indent=1) + "\n"
        (folder / file).write_text("".join(map(write, lines)))

    return edit


def _sealed(line: dict[str, Any]) -> str:
    """A line of a journal with its checksum, which is no secret."""
    content = json.dumps({name: value for name, value in line.items() if name != "crc32"}, separators=(",", ":"))[:-1]
    return f'{content},"crc32":"{crc32(content.encode()):08x}"}}\n'


# files


def _files(study: Path) -> Generator[Variation]:
    outside = study.parent / "outside"
    for file in ("study.json", "journal.jsonl", "known.jsonl", "storage.json", "lock"):
        for what, make in _replacements(outside).items():
            yield Variation(f"{file} is {what}", _replacing(file, make))
    for what, content in {
        "a deep line": DEEP + b"\n",
        "a deep object": b'{"v":2,"n":0,"event":"created","settings":' + b'{"a":' * 100_000 + b"\n",
        "a line of zeros": bytes(1_000_000),
        "empty lines": b"\n" * 1_000_000,
        "a huge number": b'{"v":2,"n":' + b"9" * 1_000_000 + b"}\n",
        "not UTF-8": b'{"v":2,"n":0,"event":"\xff\xfe"}\n',
        "NaN": b'{"v":2,"n":NaN,"event":Infinity}\n',
        "a carriage return": b'{"v":2,\r"n":0}\r\n',
    }.items():
        yield Variation(f"journal.jsonl has {what}", _appending("journal.jsonl", content))
        yield Variation(f"study.json has {what}", _appending("study.json", content))


def _replacements(outside: Path) -> dict[str, Edit]:
    def endless(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(1 << 40)  # takes no room on the disk

    return {
        "a pipe": os.mkfifo,
        "a folder": Path.mkdir,
        "a device": lambda path: path.symlink_to("/dev/zero"),
        "a link that leads out": lambda path: path.symlink_to(outside),
        "a link to itself": lambda path: path.symlink_to(path.name),
        "without an end": endless,
        "deep": lambda path: path.write_bytes(DEEP) and None,
    }


def _replacing(file: str, make: Edit) -> Edit:
    def edit(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        make(folder / file)

    return edit


def _appending(file: str, content: bytes) -> Edit:
    def edit(folder: Path) -> None:
        with (folder / file).open("ab") as written:
            written.write(content)

    return edit


# checkpoints


def _checkpoints(study: Path) -> Generator[Variation]:
    if not (study / "checkpoints").is_dir():
        return

    def pickled(path: Path) -> None:
        path.write_bytes(pickle.dumps({"model": Bomb()}))

    def zipped(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:  # as torch.save writes it
            archive.writestr("archive/data.pkl", pickle.dumps({"model": Bomb()}, protocol=2))
            archive.writestr("archive/version", "3\n")

    kinds: dict[str, Edit] = {
        "a pickle": pickled,
        "an archive with a pickle": zipped,
        **_replacements(study.parent / "outside"),
    }
    for what, make in kinds.items():
        yield Variation(f"all checkpoints are {what}", _replacing_checkpoints(make))
    yield Variation("checkpoints is a link that leads out", _linking_checkpoints(study.parent / "outside"))


def _replacing_checkpoints(make: Edit) -> Edit:
    def edit(folder: Path) -> None:
        for path in sorted((folder / "checkpoints").iterdir()):
            path.unlink()
            make(path)

    return edit


def _linking_checkpoints(outside: Path) -> Edit:
    def edit(folder: Path) -> None:
        shutil.rmtree(folder / "checkpoints")
        (folder / "checkpoints").symlink_to(outside)

    return edit
