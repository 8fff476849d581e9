"""Take the pictures of the documentation: `python -m docs.gallery.take` from the root of the repository.

The page with a finished CIFAR-10 study tuned by each preset, and with the demo while it runs, in a real Chromium at two
widths. Part of a report. The figures of the finished demo: docs/tuned_digits.png, and docs/plan_digits.png of a plan.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from benchmarks.views import served
from experiments.study_archive import StudyArchive
from paceline import Study
from paceline.planning import plan_from
from paceline.views import comparison, html_report, plan_figure, study_view, write_figure

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CIFAR = ROOT / "experiments" / "results" / "cifar"
STUDIES = {"horizon": "horizon-2.3-validation-error-0", "greedy": "greedy-0"}
REPORT_WIDTH = 1040
WIDTHS = {1280: 900, 390: 844}
FIGURE_WIDTH, FIGURE_SCALE = 800, 1.25


@contextmanager
def demo(folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """The demo, running in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "paceline", "demo"], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def picture(page: Page, name: str, *, whole: bool = True) -> None:
    """One picture, once everything is drawn."""
    page.wait_for_load_state("load")
    page.wait_for_timeout(400)  # transitions
    page.screenshot(path=HERE / f"{name}.png", full_page=whole)
    print(f"docs/gallery/{name}.png")


def take(page: Page, address: str, width: int, dark: str) -> None:
    """The finished studies at one width, and the list."""
    for name, study in STUDIES.items():
        page.goto(f"{address}study/{study}")
        page.wait_for_selector("body[data-filled]")
        picture(page, f"{name}-{width}{dark}")
    if not dark:
        page.goto(address)
        page.wait_for_selector("#costs .plot[data-drawn]")
        picture(page, f"list-{width}")


def take_report(page: Page, study: Path, folder: Path) -> None:
    """The first two figures of a report."""
    path = folder / "report.html"
    path.write_text(html_report({study.name: Study.open(study).events}))
    page.set_viewport_size({"width": REPORT_WIDTH, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    page.wait_for_timeout(400)  # transitions
    first, last = (page.locator(f"section:has(> figure > #s0-{kind})").bounding_box() for kind in ("traces", "lineage"))
    assert first is not None
    assert last is not None
    clip = {"x": 0, "y": first["y"], "width": REPORT_WIDTH, "height": last["y"] + last["height"] - first["y"]}
    page.screenshot(path=HERE / "report_greedy.png", full_page=True, clip=clip)
    print("docs/gallery/report_greedy.png")


def wait_for_decisions(page: Page, address: str) -> None:
    """Wait until the demo has made six decisions."""
    page.goto(address)
    page.wait_for_selector(".studies a", timeout=120_000)
    page.goto(page.locator(".studies a").first.evaluate("link => link.href"))
    page.wait_for_selector("#told > div:nth-child(6)", timeout=120_000)


def take_running(page: Page, address: str, width: int) -> None:
    """The demo on its way."""
    page.goto(f"{address}study/demo/paceline")
    page.wait_for_selector("body[data-filled]")
    picture(page, f"running-{width}")


def take_finished_demo(runs: Path) -> None:
    """The figures of the demo, once it is over."""
    names = ("paceline", "constant", "cosine", "one-cycle")
    views = {name: study_view(Study.open(runs / "demo" / name).events) for name in names}
    tuned = views.pop("paceline")
    plan = plan_from([runs / "demo" / "paceline"])
    figures = {"tuned_digits": comparison(tuned, views), "plan_digits": plan_figure(plan)}
    for name, figure in figures.items():
        write_figure(figure, ROOT / "docs" / f"{name}.png", width=FIGURE_WIDTH, scale=FIGURE_SCALE)
        print(f"docs/{name}.png")


def main() -> None:
    """Take all pictures, or those of one kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["finished", "running", "demo"])
    asked = parser.parse_args()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages = {
            (width, scheme): browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            for width, height in WIDTHS.items()
            for scheme in ("light", "dark")[: 2 if width == 1280 else 1]
        }
        if asked.only in (None, "finished"):
            archive = StudyArchive(CIFAR / "studies.tar.xz", CIFAR / "studies")
            greedy = archive.folder(f"resnet20/{STUDIES['greedy']}")
            with served(greedy.parent) as (address, _):
                for (width, scheme), page in pages.items():
                    take(page, address, width, "-dark" if scheme == "dark" else "")
            take_report(browser.new_page(color_scheme="light"), greedy, Path(folder))
        if asked.only != "finished":
            runs = Path(folder) / "runs"
            runs.mkdir()
            with demo(Path(folder)) as process, served(runs) as (address, _):
                if asked.only != "demo":
                    wait_for_decisions(pages[1280, "light"], address)
                    for width in WIDTHS:
                        take_running(pages[width, "light"], address, width)
                if asked.only != "running":
                    process.wait()
                    take_finished_demo(runs)
        browser.close()


if __name__ == "__main__":
    main()
