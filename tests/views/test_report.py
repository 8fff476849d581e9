"""The report: one file that asks nobody for anything, and runs nothing that a journal says."""

import base64
import hashlib
import json
import math
import re
import shutil
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.integrations.events import EventFormatter
from paceline.strategy import Dynamic, SingleRun
from paceline.study import Created, read_journal
from paceline.tuner import Tuner
from paceline.views.report import html_report
from tests.views.studies import STUDY, family, golden, with_text

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def page_without_library(page: str) -> str:
    """The page less plotly itself, which is full of addresses that it never asks for."""
    return re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)


@pytest.fixture(scope="module")
def page() -> str:
    return html_report({"runs/first": STUDY, "runs/greedy": golden("journal-1-greedy")})


def test_steps_have_thousands_separators_wherever_they_are_told(tmp_path: Path) -> None:
    """Also where a strategy or a runner put them into words, which views only pass on."""
    told = list[str]()
    for name, strategy in (("horizon", Dynamic.horizon()), ("single", SingleRun())):
        tuner, logged = Tuner(lr=(1e-3, 1.0), steps=20_000, strategy=strategy, study=tmp_path / name), EventFormatter()
        with closing(tuner):
            _drive(tuner)
        told += [record.text for event in tuner.study.events for record in logged.records(event)]
        told.append(CliRunner().invoke(app, ["show", str(tmp_path / name)]).output)
        told.append(page_without_library(html_report({name: read_journal(tmp_path / name / "journal.jsonl")})))
    texts = "\n".join(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL) for text in told)
    plain = r"\b(?:steps?|iteration) \d{4,}|\b\d{4,} (?:steps|of \d+ steps)"
    assert re.findall(plain, texts) == []
    assert len(re.findall(r"\bstep \d+,\d{3}\b", texts)) > 50
    assert "the value at step" in texts


def _drive(tuner: Tuner) -> None:
    """A loss with its best rate at 0.05; the highest rates diverge."""
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            steps = list(range(p.start, p.stop + 1, 100))[1:] or [p.stop]
            rate = p.schedule.multipliers[-1]
            losses = [1 / t**0.5 + abs(math.log10(rate / 0.05)) for t in steps]
            losses[-1] = math.nan if rate > 0.4 else losses[-1]
            tuner.tell(p, steps, {"raw": losses, "averaged": [0.9 * loss for loss in losses]})


def test_it_holds_settings_results_decisions_forks_and_figures(page: str) -> None:
    text = page_without_library(page)
    for part in (
        "runs/first",
        "dynamic on a linear base; rates from 0.001 to 1",
        "fork 2 ended best: 0.5 (raw weights), 0.45 (averaged weights)",
        "peak rate 0.1 until step 20, 0.05 to the end",
        "decision 2, step 20",
        "Its forecast was 0.3 (0.2 to 0.4) at step 100; the result was 0.45, outside the band.",
        "Fork 1 at 1.8 is behind and dropped.",
        "failed: the value at step 60 is not finite",
        "Cost against value",
    ):
        assert part in text, part
    places = re.findall(r'class="figure" id="([^"]+)"', text)
    assert places[:3] == ["costs", "s0-traces", "s0-lineage"]
    for place in places:
        (data,) = re.findall(rf'<script type="application/json" id="data-{place}">(.*?)</script>', text, re.DOTALL)
        assert json.loads(data)["data"]


def test_it_asks_nobody_for_anything(page: str) -> None:
    text = page_without_library(page)
    assert not re.findall(r"https?://", text)
    assert not re.findall(r"<(?:link|iframe|object|embed|img|base)\b", text)
    assert not re.findall(r'\b(?:src|href)="(?!#)', text)
    assert page.count("<!doctype html>") == 1


def test_only_the_two_scripts_of_the_page_may_run(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert re.findall("'sha256-([^']+)'", policy) == digests
    assert len(digests) == 2


def test_what_a_journal_says_is_shown_as_text() -> None:
    for events in (STUDY, golden("journal-1-greedy"), golden("journal-1-family")):
        text = page_without_library(html_report({HOSTILE: with_text(events, HOSTILE)}))
        assert "<img" not in text
        assert text.count("<script>") == 1
        assert "&lt;/script&gt;&lt;script&gt;document.title=" in text


def test_unfinished_and_empty_studies_have_a_report_too() -> None:
    text = html_report({"a": STUDY[:10], "b": [], "c": golden("journal-1-family")[:6]})
    assert "not over: 40 of 180 steps" in text
    assert "nothing has been observed yet" in text


def test_the_command_writes_one_file(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    folder.mkdir()
    shutil.copy(Path(__file__).parents[1] / "golden" / "journal-1-greedy.jsonl", folder / "journal.jsonl")
    created = golden("journal-1-greedy")[0]
    assert isinstance(created, Created)
    (folder / "study.json").write_text(json.dumps({"format": 1, "settings": created.settings}))
    output = tmp_path / "out.html"
    done = CliRunner().invoke(app, ["report", str(folder), "--output", str(output)])
    assert done.exit_code == 0, done.output
    assert f"wrote {output}" in done.stderr
    assert "became a clone of fork" in output.read_text()
    assert CliRunner().invoke(app, ["report", str(tmp_path / "none")]).exit_code == 2


@pytest.fixture(scope="module")
def tab() -> Generator[Any]:
    """A page of a browser."""
    sync_api = pytest.importorskip("playwright.sync_api")
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("needs chromium")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        browser.close()


@pytest.mark.parametrize("name", ["R&D <x>", "<script>document.title='taken'</script>"])
def test_names_show_literally(tmp_path: Path, tab: Any, name: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(html_report({f"runs/{name}": family(name), "other": STUDY}))
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-drawn]")
    assert tab.title() == f"runs/{name}, other: paceline report"
    assert tab.text_content("article h1") == f"runs/{name}"
    assert name in tab.locator("#s0-traces .legendtext").all_text_contents()
    assert f"{name}, run 1" in tab.locator("#s0-lineage .ytick text").all_text_contents()
    assert Path(f"runs/{name}").name in tab.locator("#costs .legendtext").all_text_contents()
    assert name in tab.locator("#s0 td").all_text_contents()


def test_in_a_browser_every_figure_is_drawn_and_nothing_else_runs(tmp_path: Path, tab: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text(html_report({"runs/first": with_text(golden("journal-1-greedy"), HOSTILE)}))
    said, asked = [], []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-drawn=light]")
    assert tab.evaluate("[...document.querySelectorAll('.figure')].every(f => f.querySelector('.main-svg'))")
    assert tab.evaluate("document.querySelectorAll('.figure').length") == 6
    assert tab.evaluate("document.querySelector('.figure').layout.paper_bgcolor") == "#ffffff"
    tab.focus(".controls input")
    tab.keyboard.press("ArrowRight")
    chosen = tab.text_content(".controls output")
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.emulate_media(color_scheme="dark")
    tab.wait_for_selector("html[data-drawn=dark]")
    tab.wait_for_timeout(300)  # it is drawn anew for its width too
    assert tab.evaluate("document.querySelector('.figure').layout.paper_bgcolor") == "#14171c"
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    assert tab.text_content(".controls output") == chosen  # the reader's choice outlives the colours
    assert "decision" in tab.text_content(".controls label:has(input)")
    assert "taken" not in tab.title()
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
