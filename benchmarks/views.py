"""`paceline serve` with long journals: how soon there is something to see, how much memory it takes, how fast news is.

Journals of two shapes (benchmarks/_journals.py) and three lengths, each behind a server of its own, looked at in a
real Chromium. Times are the browser's own: first contentful paint, and until the traces are drawn, both from the moment
the page is asked for; once right after the server was started, when the journal has not been read, and once again.
Memory is the peak of the server's resident set after all of the page was looked at, decisions and earlier forks
included. News: from the end of the write of a line to the moment the traces are drawn with it, the median of five.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks._journals import SHAPES, write_study
from benchmarks._report import machine, print_results, result, table
from paceline.study import Interval, Report
from paceline.study.journal_line import read_line, write_line

LENGTHS, NEWS, WAIT = (1_000, 10_000, 100_000), 5, 120_000
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
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


def measured(browser: Any, folder: Path) -> tuple[float, ...]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    options = parser.parse_args()
    print(machine())
    rows = list[list[object]]()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as temporary:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        print(f"Chromium {browser.version}; load average before: {os.getloadavg()[0]:.1f}")
        for shape in SHAPES:
            for length in options.lengths:
                folder = Path(temporary) / f"{shape}-{length}"
                write_study(folder, shape, length)
                size = (folder / "journal.jsonl").stat().st_size / 1e6
                figures = measured(browser, folder)
                rows.append([shape, f"{length:,}", f"{size:.1f}", *figures])
                names = ("first_paint_cold", "traces_cold", "first_paint", "traces", "memory_mb", "news")
                for name, value in zip(names, figures, strict=True):
                    result(f"views_{shape}_{length}_{name}", value)
                shutil.rmtree(folder)
        browser.close()
    header = ["journal", "events", "MB", "paint, just started", "traces", "paint, again", "traces", "peak MB", "news"]
    print(
        f"\n{table(header, rows)}\n\nseconds; peak MB is the server's; load average after: {os.getloadavg()[0]:.1f}\n"
    )
    print_results()


if __name__ == "__main__":
    main()
