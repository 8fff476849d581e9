"""The pages on integrations, followed literally: both scripts run, and few lines of the plain one change."""

import re
from difflib import SequenceMatcher
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "integrations"
ONE_RUN, FORKS = 3, 15
TARGETS = {"lightning": (ONE_RUN, FORKS), "transformers": (ONE_RUN, FORKS), "jax": (FORKS,)}
pytestmark = pytest.mark.filterwarnings("ignore")  # what Lightning and torch say to users of small loaders


def scripts(name: str) -> list[tuple[str, str]]:
    """The plain script and the changed one, for each marked change of a page."""
    page = (FOLDER / f"{name}.md").read_text()
    (first,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    pairs = list[tuple[str, str]]()
    for block in re.findall(r"```diff\n(.*?)```", page, re.DOTALL):
        lines = block.splitlines()
        plain, changed = ("\n".join(line[1:] for line in lines if line[0] in f" {mark}") for mark in "-+")
        pairs.append((f"{first}{plain}\n", f"{first}{changed}\n"))
    return pairs


def changed_lines(plain: str, changed: str) -> int:
    """Lines to write, change or delete."""
    blocks = SequenceMatcher(None, plain.splitlines(), changed.splitlines(), autojunk=False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in blocks if kind != "equal")


@pytest.mark.parametrize("name", TARGETS)
def test_pages_are_short_and_few_lines_change(name: str) -> None:
    assert len((FOLDER / f"{name}.md").read_text().splitlines()) <= 40
    counts = [changed_lines(*pair) for pair in scripts(name)]
    print(f"\n{name}: {counts} changed lines")
    assert len(counts) == len(TARGETS[name])
    assert all(count <= most for count, most in zip(counts, TARGETS[name], strict=True))


@pytest.mark.parametrize("name", TARGETS)
def test_pages_can_be_followed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(name)
    monkeypatch.chdir(tmp_path)
    plain = [pair[0] for pair in scripts(name)]
    for script in [plain[0], *(pair[1] for pair in scripts(name))]:
        exec(compile(script, f"{name}.md", "exec"), {"__name__": "__main__"})
    capfd.readouterr()
