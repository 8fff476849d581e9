"""`paceline report`. What is in the file is tested in tests/views/test_report.py."""

import shutil
from pathlib import Path

from tests.cli.command_line import call, refused


def test_a_report_of_several_studies_is_one_file(finished: Path) -> None:
    shutil.copytree("study", "other")
    done = call("report", "study", "other", "-o", "new/folder/report.html")
    assert done.exit_code == 0, done.output
    assert done.stderr == "wrote new/folder/report.html: open it in a browser\n"
    assert not done.stdout
    page = (finished / "new" / "folder" / "report.html").read_text()
    assert page.lower().startswith("<!doctype html>")
    assert "other" in page


def test_a_folder_without_a_study_is_refused(folder: Path) -> None:
    refused(call("report", "nowhere"), "nowhere is not a study")
    assert not (folder / "report.html").exists()
