"""What a study's trainings consisted of is kept, and a damaged file is said to be one."""

from pathlib import Path

import pytest

from paceline.errors import JournalError
from paceline.study import read_training_record, write_training_record


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_training_record(tmp_path) == {}
    record = {"": {"training": {"weight_decay": "0.1"}}, "b": {}}
    write_training_record(tmp_path, record)
    assert read_training_record(tmp_path) == record


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}', '{"a": {"b": {"c": 1}}}', "[" * 100_000])
def test_what_was_damaged_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(content)
    with pytest.raises(
        JournalError, match=r"training.json cannot be read .*: it was edited or damaged, restore or delete"
    ):
        read_training_record(tmp_path)
