from pathlib import Path

import pytest

from benchmarks import structure
from benchmarks.structure import ROOT, Import, measure, rows, trace_decisions

FILES = {
    "README.md": "four words, not five",
    "src/paceline/__init__.py": "",
    "src/paceline/errors.py": "class InputError(ValueError): ...\n",
    "src/paceline/traces/__init__.py": "from paceline.traces.trace import Trace\n",
    "src/paceline/traces/trace.py": "class Trace: ...\n\n\ndef cut(): ...\n",
    "src/paceline/model/__init__.py": "",
    "src/paceline/model/trace.py": (
        "from paceline.errors import InputError\n"
        "from paceline.traces import Trace\n"
        "from paceline.traces.trace import cut as first_part\n\n"
        "LIMIT: int = 3\n_HIDDEN = 4\n\n\ndef cut(): ...\n"
    ),
    "src/paceline/model/law.py": "from paceline.model.trace import cut\n\nLIMIT = 5\n_HIDDEN = 6\n",
    "tests/traces/test_trace.py": "",
    "tests/test_errors.py": "",
    "tests/test_law.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_small_tree_is_counted(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "trace_decisions", lambda _: [(28, 130), (27, 210)])
    found = measure(tree, [tree / name for name in FILES])
    assert sorted(found.lines) == [0, 0, 1, 1, 4, 4, 9]
    assert found.untested == ["model/law.py", "model/trace.py"]
    assert found.imports == [
        Import("model/trace.py", "paceline.traces"),
        Import("model/trace.py", "paceline.traces.trace"),
    ]
    assert found.names == {
        "LIMIT": ["model/law.py", "model/trace.py"],
        "cut": ["model/trace.py", "traces/trace.py"],
        "trace.py": ["model", "traces"],
    }
    table = rows(found)
    assert table["modules with a test file"] == "2 of 4 (50%)"
    assert table["imports past a package's door"] == "1 of 2"
    assert table["files of one decision"] == "27 to 28"
    assert table["hops of one decision"] == "130 to 210"
    assert table["words of the README"] == "4"


def test_decisions_of_this_tree_are_traced() -> None:
    decisions = trace_decisions(ROOT)
    assert len(decisions) == 12  # one at each rung of the default plan
    assert all(5 < files < 80 and files < hops < 800 for files, hops in decisions)
