"""Lines of a journal that were edited on purpose: their checksums fit what they say now."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32


def forged(data: dict[str, Any]) -> bytes:
    """The line of an event, as `write_line` writes it."""
    content = json.dumps({k: v for k, v in data.items() if k != "crc32"}, separators=(",", ":")).encode()[:-1]
    return content + b',"crc32":"%08x"}\n' % crc32(content)


def forge(path: Path, change) -> None:
    """Change the events of a journal: `change` is called with their data."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    change(events)
    path.write_bytes(b"".join(map(forged, events)))
