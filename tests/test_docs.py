"""What the documents show is run."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
LITTLE = "locations=6, models=2, search=paceline.settings.SearchBudget(draws=4, grid=3, sweeps=1)"
PAGES = ("README.md", "docs/one_run.md", "docs/planning.md")
BLOCKS = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=[page for page, _ in BLOCKS])
def test_code_on_a_page_runs(page: str, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    exec(compile(block, page, "exec"), {"__name__": "__main__"})


def test_the_readme_is_one_screen() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


@pytest.mark.filterwarnings("ignore:.*which is not a GPU:UserWarning")  # as the page on forks on one GPU says
@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks are one script."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile("\n".join(blocks), page.name, "exec"), {"__name__": "__main__"})


def test_code_for_streams_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "runners.md").read_text(), re.DOTALL)[0]
    heard = nullcontext() if torch.cuda.is_available() else pytest.warns(UserWarning, match="which is not a GPU")
    with heard:
        exec(compile(block, "runners.md", "exec"), {"__name__": "__main__"})


def test_the_page_on_testing_can_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL)
    names: dict = {"__name__": "__main__"}
    exec(compile("\n".join(blocks), "testing.md", "exec"), names)
    assert "a run that continues from its saved state differs from one that never stopped" in capsys.readouterr().out
    for name in ("test_descent", "test_my_strategy", "test_my_runner"):
        names[name]()


def test_the_page_on_views_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "views.md").read_text(), re.DOTALL):
        exec(compile(block, "views.md", "exec"), names)
    assert "plotly" in (tmp_path / "traces.html").read_text()
    assert names["figure"].layout.title.text == "Lineage of forks"


def test_the_page_on_tasks_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first block is mine.py, which the others import; runs are shortened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    first, *blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tasks.md").read_text(), re.DOTALL)
    (tmp_path / "mine.py").write_text(first)
    for block in blocks:
        quick = block.replace("budget=8", "budget=3, intervals=2").replace("    budget=4", "    budget=1, intervals=2")
        quick = quick.replace("budget=4", "budget=2").replace("steps=200", "steps=60")
        quick = quick.replace('study="runs/new"', f'{LITTLE}, study="runs/new"')
        exec(compile(quick, "tasks.md", "exec"), {"__name__": "__main__"})
    assert (tmp_path / "noisy.json").exists()
    assert (tmp_path / "runs" / "new" / "known.jsonl").exists()


def test_troubleshooting_quotes_what_the_code_says() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    source = re.sub(r'"\s*f?"', "", source)  # strings that go on in the next line
    rows = [
        row.split("|")[1] for row in (ROOT / "docs" / "troubleshooting.md").read_text().splitlines()[4:] if "|" in row
    ]
    quoted = [part.strip(" ,") for row in rows for text in re.findall("`([^`]+)`", row) for part in text.split("...")]
    assert len(quoted) > 20
    for part in quoted:
        assert part in source, f"troubleshooting.md quotes {part!r}, which no message says"


def test_documents_exist_where_they_are_linked() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_notation_names_things_that_exist() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for row in (ROOT / "docs" / "notation.md").read_text().splitlines():
        if row.startswith("|") and row.count("|") > 3:
            for name in re.findall(r"`([A-Za-z_.]+)`", row.split("|")[2]):
                assert name.split(".")[-1] in source, f"notation.md names {name}"


def test_the_site_builds_without_a_warning_and_asks_nothing_of_other_hosts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*.html")}
    assert {
        "index.html",
        "experiments.html",
        "results.html",
        "research_log.html",
        "reference.html",
        "tutorials/first_run.html",
    } <= set(pages)
    for name, text in pages.items():
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?:', text), name
    assert 'id="paceline.tune"' in pages["reference.html"]


@pytest.mark.parametrize("command", ["anchor_noise --families 2", "fit_growth --one exponential 100"])
def test_benchmarks_run(command: str) -> None:
    name, *options = command.split()
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", *options], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout
