"""Studies that are packed into one file are read back as they were, with those that are not packed yet."""

import tarfile
from pathlib import Path

import pytest

from experiments.study_archive import StudyArchive, write_archive
from paceline import Study
from paceline.shapes import Constant
from paceline.strategy import FixedSchedules
from paceline.tuner import Tuner


def tune(folder: Path, reports: int = 4) -> None:
    """Two runs of two intervals, or the first so many reports of them."""
    strategy = FixedSchedules((Constant(),), runs=2, intervals=2)
    tuner = Tuner(lr=(1e-3, 1e-1), steps=20, strategy=strategy, study=folder)
    while reports and (intervals := tuner.ask()):
        for interval in intervals[:reports]:
            tuner.tell(interval, [interval.stop], [interval.schedule.multipliers[0]])
            reports -= 1
    tuner.ask()
    tuner.close()


@pytest.fixture
def archive(tmp_path: Path) -> StudyArchive:
    for name in ("wide/b-0", "wide/a-1"):
        tune(tmp_path / "studies" / name)
    return StudyArchive(tmp_path / "studies.tar.xz", tmp_path / "studies")


def test_finished_studies_are_packed_and_read_as_before(archive: StudyArchive) -> None:
    tune(archive.unpacked / "unfinished", reports=1)
    events = {name: archive.open(name).events for name in archive.names}
    archive.pack()
    assert [path.parent.name for path in archive.unpacked.rglob("study.json")] == ["unfinished"]
    again = StudyArchive(archive.packed, archive.unpacked)
    for read in (archive, again):
        assert read.names == ["unfinished", "wide/a-1", "wide/b-0"]
        assert {name: read.open(name).events for name in read.names} == events
        assert "wide/a-1" in read
        assert "wide/c-2" not in read


def test_packing_again_keeps_what_was_packed(archive: StudyArchive) -> None:
    archive.pack()
    before = archive.packed.read_bytes()
    archive.pack()
    assert archive.packed.read_bytes() == before
    tune(archive.unpacked / "narrow" / "c-0")
    archive.pack()
    assert archive.names == ["narrow/c-0", "wide/a-1", "wide/b-0"]
    assert not list(archive.unpacked.rglob("study.json"))


def test_the_same_studies_give_the_same_bytes_and_no_checkpoints(archive: StudyArchive, tmp_path: Path) -> None:
    (archive.folder("wide/a-1") / "checkpoints").mkdir(exist_ok=True)
    (archive.folder("wide/a-1") / "checkpoints" / "0-20.pt").write_text("state")
    folders = {name: archive.folder(name) for name in archive.names}
    for name in ("one", "other"):
        write_archive(tmp_path / name, dict(reversed(folders.items())) if name == "other" else folders)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    with tarfile.open(tmp_path / "one") as packed:
        assert {Path(name).name for name in packed.getnames()} == {"study.json", "journal.jsonl"}


def test_without_any_study_it_is_empty(tmp_path: Path) -> None:
    archive = StudyArchive(tmp_path / "studies.tar.xz", tmp_path / "studies")
    archive.pack()
    assert archive.names == []
    assert archive.folder("a") == tmp_path / "studies" / "a"
    assert not archive.packed.exists()


def test_the_temporary_folder_goes_with_the_archive(archive: StudyArchive) -> None:
    archive.pack()
    reader = StudyArchive(archive.packed, archive.unpacked)
    folder = reader.folder("wide/a-1")
    assert Study.open(folder).finished is not None
    del reader
    assert not folder.exists()
