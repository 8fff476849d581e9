"""Readers of studies that count as too large to be shown whole."""

from pathlib import Path

import pytest

from paceline.study import read_journal
from paceline.views.data import StudyView
from paceline.views.projection import study_view
from paceline.views.web import study_reader
from paceline.views.web.study_reader import StudyReader


def large_reader(folder: Path, monkeypatch: pytest.MonkeyPatch) -> StudyReader:
    """A reader that shows a part of this study."""
    monkeypatch.setattr(study_reader, "WHOLE_LINES", 1_000)
    reader = StudyReader(folder)
    reader.refresh()
    assert not reader.whole
    return reader


def whole_view(study: StudyReader) -> StudyView:
    """All of a study, read without the reader."""
    return study_view(read_journal(study.path))
