"""Tables of the MNIST experiment, from the published results."""

from pathlib import Path

import pytest

from benchmarks import _report
from experiments._mnist_results import FOLDER
from experiments._mnist_tables import show


def test_the_published_tables_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last byte, but for the first line: the machine that prints them."""
    monkeypatch.setattr(_report, "_results", [])
    show()
    _report.print_results()
    published = (Path(FOLDER) / "show.txt").read_text()
    assert capsys.readouterr().out == published.split("\n", 1)[1]
