"""Which folders below one are studies, whatever else lies there."""

from pathlib import Path

from paceline.study.folders import DEPTH, studies_below


def made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "study.json").touch()
    return folder


def test_studies_are_found_at_any_level_and_not_looked_into(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*"abcdefgh"[: DEPTH - 1])
    found = [made(tmp_path / "first"), made(tmp_path / "more" / "second"), made(deep)]
    made(tmp_path / "first" / "checkpoints" / "inner")
    made(tmp_path / ".hidden" / "third")
    made(deep.parent / "too" / "deep")
    assert studies_below(tmp_path) == sorted(found)
    assert studies_below(tmp_path / "first") == [tmp_path / "first"]
    assert studies_below(tmp_path / "first" / "study.json") == []
    assert studies_below(tmp_path / "nowhere") == []


def test_links_and_folders_that_may_not_be_read_are_passed_over(tmp_path: Path) -> None:
    made(tmp_path / "runs" / "own")
    (tmp_path / "runs" / "link").symlink_to(made(tmp_path / "elsewhere"))
    made(tmp_path / "runs" / "other").joinpath("journal.jsonl").symlink_to(tmp_path / "secret")
    closed = tmp_path / "runs" / "closed"
    closed.mkdir(mode=0)  # who is root may read it all the same, and finds nothing
    assert studies_below(tmp_path / "runs") == [tmp_path / "runs" / "own"]
    closed.chmod(0o700)
