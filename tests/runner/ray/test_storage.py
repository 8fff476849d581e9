"""Checkpoints in a folder or at a URL: complete or absent, one folder per study."""

import json
from pathlib import Path

import fsspec
import pytest

from paceline.errors import InputError, JournalError, TrainingError
from paceline.runner.ray.storage import Storage, check_url, study_storage


@pytest.fixture(params=["folder", "url"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "folder":
        return Storage(str(tmp_path / "store"))
    return Storage(f"memory://{tmp_path.name}/store")


def test_what_is_written_is_read_and_fetched(storage: Storage, tmp_path: Path) -> None:
    assert not storage.exists("0-5.pt")
    storage.write("0-5.pt", b"content")
    assert storage.exists("0-5.pt")
    assert storage.read("0-5.pt") == b"content"
    storage.fetch("0-5.pt", tmp_path / "checkpoints" / "0-5.pt")
    assert (tmp_path / "checkpoints" / "0-5.pt").read_bytes() == b"content"


def test_others_are_deleted_except_what_is_being_written(storage: Storage) -> None:
    storage.keep_only({"0-5.pt"})  # of a folder that is not there yet
    for name in ("0-5.pt", "1-5.pt", "1-10.pt.12ab.tmp", "0-5.pt.12ab.tmp", "10-5.pt"):
        storage.write(name, b"x")
    storage.keep_only({"0-5.pt", "2-5.pt"})
    fs, root = fsspec.url_to_fs(storage.url)
    assert {path.rsplit("/", 1)[-1] for path in fs.ls(root, detail=False)} == {"0-5.pt", "0-5.pt.12ab.tmp"}


def test_files_that_the_journal_does_not_name_are_left_alone(storage: Storage) -> None:
    mine = {"best.ckpt", "7-5.pt", "0-6.pt", "0-5.pt.bak"}
    for name in {*mine, "0-5.pt", "1-5.pt"}:
        storage.write(name, b"x")
    storage.keep_only({"1-5.pt"}, lambda fork, step: fork < 2 and step == 5)
    fs, root = fsspec.url_to_fs(storage.url)
    assert {path.rsplit("/", 1)[-1] for path in fs.ls(root, detail=False)} == {*mine, "1-5.pt"}


def test_links_in_a_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "0-5.pt").write_bytes(b"elsewhere")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "0-5.pt").symlink_to(tmp_path / "0-5.pt")
    Storage(str(tmp_path / "store")).keep_only(set())
    assert (tmp_path / "store" / "0-5.pt").read_bytes() == b"elsewhere"


@pytest.mark.parametrize(
    "record", ['{"storage": "/a", "folder": "../../b"}', '{"storage": 1, "folder": "0123456789abcdef"}', "[]", "{"]
)
def test_a_record_that_leads_elsewhere_is_refused(record: str, tmp_path: Path) -> None:
    (tmp_path / "storage.json").write_text(record)
    with pytest.raises(JournalError, match="does not name a storage and a folder in it: it was edited or damaged"):
        study_storage("/a", tmp_path)


def test_single_checkpoints_are_deleted(storage: Storage) -> None:
    storage.discard({"0-5.pt"})  # of a folder that is not there yet
    for name in ("0-5.pt", "1-5.pt"):
        storage.write(name, b"x")
    storage.discard({"0-5.pt", "2-5.pt"})
    assert not storage.exists("0-5.pt")
    assert storage.exists("1-5.pt")


def test_a_missing_checkpoint_stops_the_study_with_advice(storage: Storage, tmp_path: Path) -> None:
    for action, call in (("read", storage.read), ("fetched", lambda name: storage.fetch(name, tmp_path / name))):
        with pytest.raises(TrainingError, match=rf"0-5.pt could not be {action} at .*: check the storage and start"):
            call("0-5.pt")


def test_each_study_has_a_folder_of_its_own_and_finds_it_again(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    url = str(tmp_path / "store")
    one, other = study_storage(url, first), study_storage(url, second)
    assert one is not None
    assert one != other
    assert study_storage(url, first) == one
    record = json.loads((first / "storage.json").read_text())
    assert one.url == f"{url}/{record['folder']}"
    with pytest.raises(InputError, match=r"keeps its checkpoints in .*store, got storage=None: pass storage="):
        study_storage(None, first)
    with pytest.raises(InputError, match=r"got storage='elsewhere': pass storage="):
        study_storage("elsewhere", first)


def test_a_study_that_began_in_its_folder_stays_there(tmp_path: Path) -> None:
    assert study_storage(None, tmp_path) is None
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "0-0.pt").touch()
    assert study_storage(None, tmp_path) is None
    with pytest.raises(InputError, match=r"in its folder, got storage='elsewhere': leave storage out"):
        study_storage("elsewhere", tmp_path)


def test_a_path_is_made_absolute_and_other_urls_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert check_url("store") == str(tmp_path / "store")
    assert check_url(f"file://{tmp_path}/store") == str(tmp_path / "store")
    assert check_url("memory://bucket/store") == "memory://bucket/store"
    with pytest.raises(InputError, match=r"storage='nowhere://x' cannot be used: .*; expected a folder on a mount"):
        check_url("nowhere://x")
