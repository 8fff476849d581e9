"""The studies in the folders that are served."""

import os
from pathlib import Path

import pytest

from paceline.errors import InputError
from paceline.views.web import catalogue
from paceline.views.web.catalogue import Catalogue
from tests.views.studies import EVENTS
from tests.views.web.studies import append, write


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders that these tests have just made count as old."""
    monkeypatch.setattr(catalogue, "SETTLED_AFTER", -60.0)


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "runs" / "first")
    outside = write(tmp_path / "outside")
    (tmp_path / "runs" / "linked").symlink_to(outside)
    disguised = write(tmp_path / "runs" / "disguised", [])
    (disguised / "journal.jsonl").unlink()
    (disguised / "journal.jsonl").symlink_to(outside / "journal.jsonl")
    assert list(Catalogue([tmp_path / "runs"]).studies()) == ["first"]


def test_studies_of_one_name_are_told_apart_and_the_latest_comes_first(tmp_path: Path) -> None:
    for folder in ("a/first", "b/first", "b/deep/er/second"):
        write(tmp_path / folder)
    served = Catalogue([tmp_path / "a" / "first", tmp_path / "b", tmp_path / "a"])
    assert set(served.studies()) == {"first", "b/first", "deep/er/second"}
    append(write(tmp_path / "b" / "third", EVENTS[:3]), EVENTS[3:4])
    served.look()
    assert next(iter(served.studies())) == "third"
    with pytest.raises(InputError, match="no folder"):
        Catalogue([tmp_path / "nowhere"])


def test_folders_are_searched_again_only_if_one_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "deep" / "first")
    served = Catalogue([tmp_path])
    served.look()
    scans, scan = list[object](), os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (scans.append(folder), scan(folder))[1])
    append(tmp_path / "deep" / "first", EVENTS[:1])
    for _ in range(5):
        served.look()
        assert served.get("deep/first") is not None
    assert scans == []
    write(tmp_path / "deep" / "er" / "second")
    served.look()
    assert set(served.studies()) == {"deep/first", "deep/er/second"}
    assert len(scans) > 0
    (tmp_path / "deep" / "first" / "study.json").unlink()
    served.look()
    assert set(served.studies()) == {"deep/er/second"}


def test_a_folder_that_was_changed_a_moment_ago_is_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where clocks are coarse, a second change leaves the time of the first."""
    monkeypatch.setattr(catalogue, "SETTLED_AFTER", 60.0)
    served = Catalogue([tmp_path])
    served.look()
    status = tmp_path.stat()
    write(tmp_path / "first")
    os.utime(tmp_path, ns=(status.st_atime_ns, status.st_mtime_ns))
    served.look()
    assert set(served.studies()) == {"first"}


def test_folders_are_looked_at_once_in_two_seconds(tmp_path: Path) -> None:
    served = Catalogue([tmp_path])
    assert served.studies() == {}
    write(tmp_path / "first")
    assert served.studies() == {}
    served.look()
    assert set(served.studies()) == {"first"}


def test_what_was_asked_for_longest_ago_is_forgotten_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        write(tmp_path / name)
    served = Catalogue([tmp_path])
    first = served.get("first")
    assert first is not None
    first.view()
    assert first.events_in_memory > 0
    monkeypatch.setattr(catalogue, "MAX_EVENTS", 1)
    assert served.get("second") is not None
    assert first.events_in_memory == 0
    assert len(first.view().forks) == 3, "it is read again"
