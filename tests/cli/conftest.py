"""Folders to run commands in: empty, or with a finished study."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import SMALL, call


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.fixture(scope="session")
def tuned_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tuned") / "study"
    assert call("tune", "tests.cli.command_line:quadratic", *SMALL[:-1], str(path), "--quiet").exit_code == 0
    return path


@pytest.fixture
def finished(folder: Path, tuned_once: Path) -> Path:
    """A folder with a study that `tuned` has ended, for those who only look at it."""
    shutil.copytree(tuned_once, folder / "study")
    return folder
