"""An open page costs nothing while nothing happens."""

import builtins
import io
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from paceline.views.web import study_reader
from paceline.views.web.catalogue import FOLDER_PAUSE
from paceline.views.web.watcher import JOURNAL_PAUSE, LIST_PAUSE
from tests.views.studies import EVENTS
from tests.views.web.studies import append, write

STUDIES = 12
FOLDERS = 1 + 3 + STUDIES  # the one that is served, the groups in it, and the studies
IDLE = 2.0  # seconds
CALLS = ("stat", "lstat", "scandir", "listdir")
Calls = Counter[tuple[str, str]]  # by the name of the call and of the file


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Calls of the file system below the folder that is served, and views that are made."""
    counts = Calls()

    def counting(call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def count(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            if isinstance(path, str | os.PathLike) and str(path).startswith(str(tmp_path)):
                counts[call, Path(path).name] += 1
            return real(path, *arguments, **options)

        return count

    for call in CALLS:
        monkeypatch.setattr(os, call, counting(call, getattr(os, call)))
    counting_open = counting("open", io.open)
    monkeypatch.setattr(io, "open", counting_open)
    monkeypatch.setattr(builtins, "open", counting_open)
    real_view = study_reader.study_view

    def counting_view(*arguments: Any) -> Any:
        counts["view", ""] += 1
        return real_view(*arguments)

    monkeypatch.setattr(study_reader, "study_view", counting_view)
    return counts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of studies that were made long ago."""
    for number in range(STUDIES):
        write(tmp_path / f"group{number % 3}" / f"study{number}", EVENTS[:6])
    for path in [tmp_path, *tmp_path.rglob("*")]:
        if path.is_dir():
            os.utime(path, (1_700_000_000, 1_700_000_000))
    return tmp_path


@contextmanager
def streams(address: str, *paths: str) -> Generator[list[list[str]]]:
    """Streams as open pages have them: the revisions that came, by stream."""
    with ExitStack() as stack:
        received = [list[str]() for _ in paths]
        for path, revisions in zip(paths, received, strict=True):
            answer = stack.enter_context(httpx.stream("GET", address + path, timeout=60))
            threading.Thread(target=_receive, args=(answer, revisions), daemon=True).start()
        wait_until(lambda: all(received))
        yield received


def _receive(answer: httpx.Response, revisions: list[str]) -> None:
    try:
        revisions.extend(line[4:] for line in answer.iter_lines() if line.startswith("id: "))
    except (httpx.StreamError, httpx.TransportError, OSError):
        return  # the page was closed


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.02)


def total(calls: Calls, *names: str) -> int:
    return sum(count for (call, _), count in calls.items() if call in names)


def test_open_pages_look_at_their_journals_and_at_nothing_else(
    folder: Path, serve: Callable[..., str], calls: Calls
) -> None:
    pages = 4  # of each kind
    with streams(serve(folder), *["/events/group0/study0"] * pages, *["/events"] * pages):
        time.sleep(JOURNAL_PAUSE)
        calls.clear()
        began = time.monotonic()
        time.sleep(IDLE)
        idle, seen = time.monotonic() - began, calls.copy()
    assert total(seen, "open", "scandir", "listdir", "view") == 0
    looks, list_looks = idle / JOURNAL_PAUSE + 1, idle / LIST_PAUSE + 1
    assert 0 < seen["lstat", "journal.jsonl"] <= looks + STUDIES * list_looks, "once for all pages together"
    assert {name for call, name in seen if call == "lstat"} == {"journal.jsonl"}
    assert total(seen, "stat") <= FOLDERS * (idle / FOLDER_PAUSE + 1)


def test_without_an_open_page_nothing_is_looked_at(folder: Path, serve: Callable[..., str], calls: Calls) -> None:
    address = serve(folder)
    with streams(address, "/events/group0/study0", "/events"):
        pass
    append(folder / "group0" / "study0", EVENTS[6:7])
    wait_until(lambda: _is_quiet(calls))
    time.sleep(4 * JOURNAL_PAUSE)
    assert calls == Calls()


def _is_quiet(calls: Calls) -> bool:
    """Whether nothing was looked at for a while: a server notices a closed page a moment later."""
    calls.clear()
    time.sleep(2 * JOURNAL_PAUSE)
    return not calls


def test_answers_are_made_once_for_each_revision(folder: Path, serve: Callable[..., str], calls: Calls) -> None:
    address = serve(folder)
    paths = [f"{kind}/group0/study0" for kind in ("summary", "forks", "decisions", "figure/traces")]

    def answers() -> list[str]:
        return [httpx.get(f"{address}/{path}", timeout=60).text for path in (*paths, "costs.json")]

    first = answers()
    calls.clear()
    assert [answers() for _ in range(3)] == [first] * 3
    assert total(calls, "open", "scandir", "listdir", "view") == 0
    assert {name for call, name in calls if call == "lstat"} == {"journal.jsonl"}
    append(folder / "group0" / "study0", EVENTS[6:7])
    assert httpx.get(f"{address}/summary/group0/study0", timeout=60).json()["events"] == 7
    assert httpx.get(f"{address}/decisions/group0/study0", timeout=60).json()["count"] == 2


def test_every_open_page_gets_each_revision(folder: Path, serve: Callable[..., str]) -> None:
    study = folder / "group0" / "study0"
    with streams(serve(folder), "/events/group0/study0", "/events/group0/study0", "/events") as (one, other, listed):
        for count in (7, 9):
            append(study, EVENTS[len((study / "journal.jsonl").read_bytes().splitlines()) : count])
            wait_until(lambda count=count: one[-1] == other[-1] == f"0.{count}")
        wait_until(lambda: len(listed) > 1)
        write(folder / "group1" / "new", EVENTS[:1])
        wait_until(lambda: listed[-1].startswith(f"{STUDIES + 1}."))
