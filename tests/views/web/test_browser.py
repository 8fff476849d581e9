"""The page in a real browser: what it shows, how fast news arrive, at two widths, by keyboard, without the mouse."""

import shutil
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from benchmarks._hostile_studies import TEXTS
from paceline.study import Created, Decided, Failure, Interval, Report, because
from paceline.views.web.study_reader import StudyReader
from tests.views.studies import EVENTS, FIRST, OTHER, SETTINGS, family, golden, with_text
from tests.views.web.studies import append, write

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
WAIT = 30_000  # ms, on a loaded machine
WIDTHS = {1280: 900, 390: 844}
MARKUP = '<img src=x onerror="document.body.dataset.hacked=1"><script>document.body.dataset.hacked=1</script>'


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any) -> Generator[Callable[..., Any]]:
    """Open a page; whatever it complains about, and whatever it asks of others, fails the test."""
    contexts, complaints = list[Any](), list[str]()

    def visit(address: str, *, width: int = 1280, dark: bool = False) -> Any:
        scheme = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _check_own(request.url, address, complaints))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert complaints == []


def _check_own(url: str, address: str, complaints: list[str]) -> None:
    own = "/".join(address.split("/")[:3]) + "/"
    if not url.startswith((own, "data:", "blob:")):
        complaints.append(f"asked for {url}")


def filled(page: Any) -> Any:
    page.wait_for_selector("body[data-filled]", state="attached")
    return page


def arrived(page: Any, events: int) -> None:
    """Wait until so many events are drawn."""
    page.wait_for_selector(f"body[data-revision='0.{events}']", state="attached")


def chosen(page: Any, at: int, *, focused: bool = False) -> None:
    """Wait until a decision is chosen."""
    page.wait_for_selector(f"#decision-list > div[aria-selected=true][data-at='{at}']{':focus' * focused}")


PLOTTED = """() => document.querySelector('#traces .plot')._fullData
    .flatMap(trace => Array.from(trace.x ?? [], (x, i) => [Number(x), Number(trace.y[i])]))"""


@pytest.mark.parametrize("width", WIDTHS)
def test_a_study_at_both_widths(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any], width: int
) -> None:
    folder = write(tmp_path / "first")
    page = filled(opened(f"{serve(tmp_path)}/study/first", width=width, dark=width == 390))
    assert page.inner_text("h1") == "first"
    assert page.inner_text("#status").startswith("Fork 2 ended best: 0.5 with raw weights")
    plotted = {(x, round(y, 9)) for x, y in page.evaluate(PLOTTED)}
    followed = StudyReader(folder)
    followed.refresh()
    view = followed.view()
    for fork in view.forks:
        assert {(float(x), round(y, 9)) for x, y in zip(fork.steps, fork.values[view.weights], strict=True)} <= plotted
    rows = [row.split("\t") for row in page.inner_text("#forks tbody").splitlines()]
    assert [(row[0], row[1]) for row in rows] == [("2", "won"), ("1", "dropped"), ("0", "ended")]
    assert page.locator("#decision-list > div").count() == 3
    assert "the result was 0.45, outside the band" in page.inner_text("#decision-list")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator("#traces .plot").bounding_box()["width"] <= width
    with page.expect_download() as kept:
        page.click("#as-py")
    assert "def learning_rate(step):" in Path(kept.value.path()).read_text()


def test_news_arrive_while_the_page_is_open(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]
) -> None:
    folder = write(tmp_path / "first", EVENTS[:6])
    page = filled(opened(f"{serve(tmp_path)}/study/first"))
    assert page.locator("#decision-list > div").count() == 1
    append(folder, EVENTS[6:11])
    page.wait_for_selector("#decision-list > div:nth-child(2)")
    page.wait_for_selector("#forks tbody tr:nth-child(3)")
    append(folder, EVENTS[11:])
    page.wait_for_selector("#state.finished")
    arrived(page, len(EVENTS))
    assert [100, 0.45] in page.evaluate(PLOTTED)
    assert page.inner_text("#live") == "live"


def test_news_arrive_within_two_seconds(tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]) -> None:
    """From the line in the journal to the drawing; the best of three, since the machine may be loaded."""
    folder = write(tmp_path / "first", EVENTS[:6])
    page = filled(opened(f"{serve(tmp_path)}/study/first"))
    waits = list[float]()
    for count in (7, 9, 11):
        append(folder, EVENTS[len(lines_of(folder)) : count])
        begun = time.monotonic()
        arrived(page, count)
        waits.append(time.monotonic() - begun)
    assert min(waits) < 2, f"news took {waits} s"


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "journal.jsonl").read_bytes().splitlines()


def test_by_keyboard(tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]) -> None:
    write(tmp_path / "first")
    page = filled(opened(f"{serve(tmp_path)}/study/first"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    wanted, reached = {"previous", "option", "region", "as-json", "as-csv", "as-py"}, set[str]()
    for _ in range(100):  # each figure has buttons of its own
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('role') || ''"))
        if wanted <= reached:
            break
    assert wanted <= reached
    page.focus("#decision-list > div[aria-selected=true]")
    chosen(page, 2)
    page.keyboard.press("ArrowDown")
    chosen(page, 1, focused=True)
    page.keyboard.press("End")
    chosen(page, 0, focused=True)
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Home")
    chosen(page, 2, focused=True)
    assert page.is_disabled("#next")
    page.focus("#previous")
    page.keyboard.press("Enter")
    chosen(page, 1)


VISIBLE = "document.querySelector('#forecasts .plot').data.map((trace) => trace.visible)"
SCALE = "document.querySelector('#traces .plot').layout.xaxis.type"


def test_controls_of_figures_by_keyboard_and_while_news_arrive(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]
) -> None:
    events = golden("journal-1-greedy")
    write(tmp_path / "first", events[:-1])
    page = filled(opened(f"{serve(tmp_path)}/study/first"))
    shown = page.evaluate(VISIBLE)
    page.focus("#forecasts .controls input")
    assert page.text_content("#forecasts output") == "all"
    page.keyboard.press("ArrowRight")
    label = page.text_content("#forecasts output")
    assert "at step" in label
    assert page.get_attribute("#forecasts .controls input", "aria-valuetext") == label
    only = page.evaluate(VISIBLE)
    assert sum(only) < sum(shown)
    page.focus("#traces .controls button >> text=log")
    page.keyboard.press("Enter")
    page.wait_for_function(f"{SCALE} === 'log'")
    append(tmp_path / "first", events[-1:])
    arrived(page, len(events))
    page.wait_for_selector("body[data-filled='2']", state="attached")
    assert page.evaluate("document.activeElement.textContent") == "log"  # the reader is not disturbed
    assert page.evaluate(SCALE) == "log"
    assert page.text_content("#forecasts output") == label
    assert page.evaluate(VISIBLE) == only


@pytest.mark.parametrize("width", WIDTHS)
def test_the_list_of_studies(tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any], width: int) -> None:
    write(tmp_path / "first")
    write(tmp_path / "second", EVENTS[:6])
    page = opened(serve(tmp_path), width=width)
    page.wait_for_selector("#costs .plot[data-drawn]")
    assert page.locator(".studies a").all_inner_texts() == ["second", "first"]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    write(tmp_path / "third", EVENTS[:3])
    page.wait_for_selector(".studies a[href='/study/third']")
    page.focus(".studies a[href='/study/first']")
    page.keyboard.press("Enter")
    filled(page)
    assert page.inner_text("h1") == "first"


def test_a_long_list_is_filled_in_where_it_is_looked_at(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]
) -> None:
    folder, count = write(tmp_path / "study0"), 60
    for number in range(1, count):
        shutil.copytree(folder, tmp_path / f"study{number}")
    page = filled(opened(serve(tmp_path)))
    assert page.locator(".studies li").count() == count
    assert page.inner_text("#count") == "60 studies, the one written last first."
    first, last = page.locator(".studies li").first, page.locator(".studies li").last
    assert first.locator(".state").inner_text() == "finished"
    assert last.locator(".state").is_hidden()
    last.scroll_into_view_if_needed()
    last.locator(".state.finished").wait_for()
    shutil.rmtree(tmp_path / "study7")
    page.wait_for_selector(".studies li:nth-child(59):last-child", state="attached")


def test_text_of_a_journal_stays_text(tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]) -> None:
    broken = [*EVENTS[:5], Report(1, 0, 10, (10,), {"raw": (2.0,), "averaged": (2.0,)}, Failure("raised", MARKUP))]
    study = [*broken, Decided(2, 20, (because("text", text=MARKUP),), {"ranking": [{"fork": 0, "value": 1.6}]}, 0.1)]
    write(tmp_path / "<img src=x onerror=alert(1)>", [*study, Interval(0, None, 20, 100, FIRST.extend(0.1, 100), 2)])
    page = opened(serve(tmp_path))
    page.click(".studies a")
    filled(page)
    assert page.inner_text("h1") == "<img src=x onerror=alert(1)>"
    assert MARKUP in page.inner_text("#decision-list")
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.body.dataset.hacked") is None


@pytest.mark.parametrize("text", TEXTS[:2], ids=["markup", "end of a script"])
def test_text_of_a_stranger_runs_no_script(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any], text: str
) -> None:
    settings = {**SETTINGS, "strategy": {"strategy": text, "weights": text, "base": {"name": text}}}
    events = with_text([Created(settings), *EVENTS[1:]], text)
    write(tmp_path / "first", events)
    page = filled(opened(f"{serve(tmp_path)}/study/first"))
    assert text in page.inner_text("#settings")
    assert text in page.inner_text("#decision-list")
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.body.dataset.hacked") is None


@pytest.mark.parametrize("name", ["R&D <x>", "<script>document.body.dataset.hacked=1</script>"])
def test_names_show_literally(tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any], name: str) -> None:
    """In the heading, the table of forks and the figures; a folder's name cannot hold a slash."""
    folder = name.replace("/", "_")
    write(tmp_path / folder, family(name))
    page = opened(serve(tmp_path))
    page.wait_for_selector(".studies a")
    assert page.inner_text(".studies a") == folder
    page.click(".studies a")
    filled(page)
    assert page.inner_text("h1") == folder
    assert name in page.locator("#traces .legendtext").all_text_contents()
    assert f"{name}, run 1" in page.locator("#lineage .ytick text").all_text_contents()
    assert name in page.locator("#forks td").all_text_contents()
    assert (page.inner_text("#forks-title"), "clone" in page.inner_text("#traces-note")) == ("Runs", False)
    assert page.locator("main script").count() == 0
    assert page.evaluate("document.body.dataset.hacked") is None


def test_a_study_that_is_damaged_or_has_not_begun_says_so(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]
) -> None:
    folder = write(tmp_path / "first", [])
    page = opened(f"{serve(tmp_path)}/study/first")
    page.wait_for_selector("#state.empty")
    assert page.inner_text("#status") == "Nothing has happened yet."
    append(folder, [*EVENTS[:2], Interval(0, None, 0, 20, OTHER, 1)])
    filled(page)
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b"nonsense\n")
    page.wait_for_selector("#state.damaged")
    assert "not an event" in page.inner_text("#status")


def test_with_a_token_from_another_address(
    tmp_path: Path, serve: Callable[..., str], opened: Callable[..., Any]
) -> None:
    write(tmp_path / "first")
    token = "a-token-of-some-length"
    page = opened(f"{serve(tmp_path, host='0.0.0.0', token=token)}/study/first?token={token}")
    page.wait_for_url("**/study/first")
    filled(page)
    assert page.inner_text("h1") == "first"
    assert page.evaluate("document.cookie") == ""  # scripts cannot read it
