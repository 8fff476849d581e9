"""`paceline serve` with long journals: how soon there is something to see, how much memory it takes, how fast news is.

Journals of two shapes (benchmarks/_journals.py) and three lengths, each behind a server of its own, looked at in a
real Chromium. Times are the browser's own: first contentful paint, and until the traces are drawn, both from the moment
the page is asked for; once right after the server was started, when the journal has not been read, and once again.
Memory is the peak of the server's resident set after all of the page was looked at, decisions and earlier forks
included. News: from the end of the write of a line to the moment the traces are drawn with it, the median of five.

A list of 2,000 studies: until their names and the summaries in view are there, and what the server takes of a core
while a page is open and nothing happens. A random search of 100,000 forks and 1,000,000 events: opened on the page
(until its summary is answered), opened in Python, and continued to its end. Times of these are wall and processor
seconds.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from benchmarks._journals import write_study
from benchmarks._large_studies import idle_share, measured, processor_seconds, write_list
from benchmarks._report import machine, print_results, result, table
from paceline.study import Interval, Report
from paceline.study.journal_line import read_line, write_line

LENGTHS, LISTED_STUDIES, LARGE = (1_000, 10_000, 100_000), 2_000, (100_000, 1_000_000)
NEWS, WAIT = 5, 120_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
LISTED = "performance.getEntriesByName('summaries')[0].startTime"
DRAWN = "performance.getEntriesByName('traces')[0].startTime"


@contextmanager
def served(*folders: Path) -> Generator[tuple[str, int]]:
    """The address of a server of these folders, and its process."""
    command = [sys.executable, "-m", "paceline", "serve", *map(str, folders), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.search(r"http://\S+/", line)
            assert match is not None, line
            yield match[0], process.pid
        finally:
            process.terminate()


def peak_megabytes(process: int) -> float:
    """The most memory that a process has held so far."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def visit(page: Page, address: str, folder: Path) -> tuple[float, float]:
    """Seconds until the first paint and until the traces are drawn."""
    page.goto(f"{address}study/{folder.name}", wait_until="commit")
    page.wait_for_selector("#traces .plot[data-drawn]", timeout=WAIT)
    page.wait_for_selector("body[data-filled]", timeout=WAIT, state="attached")
    return page.evaluate(PAINT) / 1000, page.evaluate(DRAWN) / 1000


def look_around(page: Page) -> None:
    """Everything that a reader may ask for."""
    for button in ("#more-forks", "#more-decisions", "#more-forks"):
        page.evaluate("id => document.querySelector(id).hidden || document.querySelector(id).click()", button)
    for _ in range(10):
        if page.is_enabled("#previous"):
            page.click("#previous")
    page.wait_for_load_state("load")
    for kind in ("traces", "lineage", "forecasts", "surface", "failure", "embedding", "calibration"):
        path = page.url.replace("/study/", f"/figure/{kind}/")
        page.evaluate("path => fetch(path).then(answer => answer.text())", path)


def news(page: Page, folder: Path) -> list[float]:
    """Seconds from two lines in the journal, an interval and a report on it, to the drawing."""
    path, waits = folder / "journal.jsonl", list[float]()
    lines = path.read_bytes().splitlines(keepends=True)
    count = len(lines)
    events = [read_line(path, number, line) for number, line in enumerate(lines)]
    report = next(event for event in reversed(events) if isinstance(event, Report))
    interval = next(e for e in reversed(events) if isinstance(e, Interval) and e.fork == report.fork)
    del lines, events
    for number in range(count, count + 2 * NEWS, 2):
        with path.open("ab") as file:
            file.write(write_line(number, replace(interval, parent=None)) + write_line(number + 1, report))
            file.flush()
            os.fsync(file.fileno())
        began = time.perf_counter()
        page.wait_for_selector(f"body[data-revision='0.{number + 2}']", timeout=WAIT, state="attached")
        waits.append(time.perf_counter() - began)
    return waits


def measured_page(browser: Any, folder: Path) -> tuple[float, ...]:
    """First paint and traces when the server has just started, the same again, peak memory, and how fast news come."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    with served(folder) as (address, process):
        page = context.new_page()
        cold = visit(page, address, folder)
        warm = visit(page, address, folder)
        look_around(page)
        waits = news(page, folder)
        peak = peak_megabytes(process)
        context.close()
    return (*cold, *warm, peak, median(waits))


def measure_list(browser: Any, root: Path, count: int) -> None:
    """The list of many studies, and what an idle page costs."""
    write_list(root, count)
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    with served(root) as (address, process):
        page = context.new_page()
        rows = list[list[Any]]()
        for visited in ("just started", "again"):
            before = processor_seconds(process)
            page.goto(address, wait_until="commit")
            page.wait_for_selector(f".studies li:nth-child({count})", timeout=WAIT, state="attached")
            page.wait_for_selector("body[data-listed]", timeout=WAIT, state="attached")
            used = processor_seconds(process) - before
            rows.append([visited, page.evaluate(PAINT) / 1000, page.evaluate(LISTED) / 1000, used])
        context.close()
        time.sleep(5)  # what was asked for is still being made
        name = next(root.glob("*/*")).relative_to(root)
        idle = {what: idle_share(address, process, what) for what in ("", "events", f"events/{name}")}
        peak = peak_megabytes(process)
    print(f"\n{table([f'{count:,} studies', 'paint', 'names and summaries in view', 'processor s'], rows)}\n")
    shares = dict(zip(("no page", "list", "study"), idle.values(), strict=True))
    said = ", ".join(f"{what} {share:.2%}" for what, share in shares.items())
    print(f"server: {peak:.0f} MB; of a core while nothing happens: {said}")
    for row, visited in zip(rows, ("cold", "warm"), strict=True):
        result(f"views_list_{count}_{visited}", row[2])
        result(f"views_list_{count}_{visited}_cpu", row[3])
    result(f"views_list_{count}_memory_mb", peak)
    for what, share in shares.items():
        result(f"views_idle_core_share_{what.replace(' ', '_')}", share)


def measure_large(root: Path, events: int) -> None:
    """A study of many events and forks: on the page, opened and continued."""
    folder = root / f"search-{events}"
    write_study(folder, "search", events)
    with served(folder) as (address, process):
        before = processor_seconds(process), time.perf_counter()
        while (answer := httpx.get(f"{address}summary/{folder.name}", timeout=600)).status_code == 503:
            time.sleep(0.2)
        shown = {"wall": time.perf_counter() - before[1], "cpu": processor_seconds(process) - before[0]}
        shown["mb"] = peak_megabytes(process)
        count = answer.json()["forks"]
    figures = {
        "page": shown,
        "open": measured("open", folder, events),
        "continue": measured("continue", folder, events),
    }
    rows = [[what, row["wall"], row["cpu"], row["mb"]] for what, row in figures.items()]
    print(f"\n{table([f'{events:,} events, {count:,} forks', 'wall s', 'processor s', 'peak MB'], rows)}")
    for what, row in figures.items():
        for name in ("wall", "cpu", "mb"):
            result(f"views_large_{events}_{what}_{name}", row[name])
    shutil.rmtree(folder)


def measure_pages(browser: Any, root: Path, lengths: Sequence[int]) -> None:
    """Pages of long journals."""
    rows = list[list[object]]()
    for shape in ("population", "family"):
        for length in lengths:
            folder = root / f"{shape}-{length}"
            write_study(folder, shape, length)
            size = (folder / "journal.jsonl").stat().st_size / 1e6
            figures = measured_page(browser, folder)
            rows.append([shape, f"{length:,}", f"{size:.1f}", *figures])
            names = ("first_paint_cold", "traces_cold", "first_paint", "traces", "memory_mb", "news")
            for name, value in zip(names, figures, strict=True):
                result(f"views_{shape}_{length}_{name}", value)
            shutil.rmtree(folder)
    header = ["journal", "events", "MB", "paint, just started", "traces", "paint, again", "traces", "peak MB", "news"]
    print(f"\n{table(header, rows)}\n\nseconds; peak MB is the server's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--list", type=int, default=LISTED_STUDIES, help="studies in the list")
    parser.add_argument("--large", type=int, nargs="*", default=LARGE, help="events of the studies that are continued")
    options = parser.parse_args()
    print(machine())
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print(f"Chromium {browser.version}; load average before: {os.getloadavg()[0]:.1f}")
        if options.list:
            measure_list(browser, Path(temporary) / "list", options.list)
        for events in options.large:
            measure_large(Path(temporary), events)
        if options.lengths:
            measure_pages(browser, Path(temporary), options.lengths)
        browser.close()
    print(f"\nload average after: {os.getloadavg()[0]:.1f}\n")
    print_results()


if __name__ == "__main__":
    main()
