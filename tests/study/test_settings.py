import json
from pathlib import Path

import pytest

from paceline.errors import JournalError
from paceline.study import read_settings, write_settings


def test_settings_are_written_with_format_versions_and_seed(tmp_path: Path) -> None:
    write_settings(tmp_path, {"lr": [0.1, 1.0]}, 7)
    data = read_settings(tmp_path)
    assert (data["format"], data["seed"], data["settings"]) == (3, 7, {"lr": [0.1, 1.0]})
    assert set(data["versions"]) == {"python", "torch", "numpy"}


def test_settings_of_format_1_come_under_their_present_names(tmp_path: Path) -> None:
    old = {"format": 1, "settings": {"strategy": {"strategy": "dynamic", "of": "raw"}}}
    (tmp_path / "study.json").write_text(json.dumps(old))
    assert read_settings(tmp_path)["settings"] == {"strategy": {"strategy": "dynamic", "weights": "raw"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("17", "cannot be read .*: it was edited or damaged, restore it"),
        ('{"format": 2}', "cannot be read .*'settings'"),
        ('{"format": 9, "paceline": "3.0", "settings": {}}', "was written by paceline 3.0 in format 9, .* up to 3"),
    ],
)
def test_settings_that_cannot_be_read_say_why(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(JournalError, match=message):
        read_settings(tmp_path)


def test_a_folder_of_studies_is_no_study_and_they_are_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"is not a study: expected a folder with study\.json, check the path"):
        read_settings(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_settings(tmp_path / name, {}, 0)
    with pytest.raises(JournalError, match="it holds studies, name one: a, b"):
        read_settings(tmp_path)
