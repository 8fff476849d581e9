"""Studies of a stranger: whatever their files hold, no code of theirs runs and nothing is written outside their folder.

Three sound studies (one that was interrupted, a family, a population), with one change at a time, as
benchmarks/_hostile_studies.py lists them. Each variation is shown, reported, exported in all formats, replayed, asked
for on every route of the page, and continued. Each of these must end, within a minute, with an answer or an error
message. What is printed must hold no control characters; on a terminal none but colours and the moves of the display.
Pages and reports must hold none of the markup, and the Python export must be a function that returns a number.

Forked processes share the variations. What no signal can interrupt ends the benchmark, with a traceback of where it is.
"""

import argparse
import faulthandler
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import chdir, contextmanager, suppress
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from starlette.testclient import TestClient
from typer.testing import CliRunner

from benchmarks._hostile_studies import MARK, SCRIPT, Variation, variations, write_variation
from benchmarks._journals import write_study
from benchmarks._report import machine, print_results, result, table
from paceline.cli import app
from paceline.problems import Quadratic, QuadraticTraining
from paceline.tuner import tune
from paceline.views.web.app import make_app
from paceline.views.web.catalogue import Catalogue

STEPS, LR, COST, LIMIT = 100, (0.01, 1.5), 1.5, 60  # seconds
FACTORY = "benchmarks.hostile:quadratic"
OPTIONS = ("--steps", str(STEPS), "--lr", str(LR[0]), str(LR[1]), "--cost", str(COST))
EXPORTS = ("json", "csv", "python")
ROUTES = ("summary", "forks", "decisions", "figure/traces", "figure/lineage", "figure/forecasts", "schedule/json")
ON_TERMINAL = {"FORCE_COLOR": "1"}
OF_DISPLAY = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\r"
)  # what rich writes to a terminal; the studies hold other controls too
DEPTH = "a/b/c"  # folders around what is tried, so that a path that leads up and out of it ends where it is found
MARKUP = ("<img src=x", f"<script>{SCRIPT}", f'onerror="{SCRIPT}')


def quadratic() -> QuadraticTraining:
    return QuadraticTraining(Quadratic(dims=5), seed=3)


def sound_study(folder: Path) -> Path:
    """A study that was interrupted in the middle: intervals are open, and checkpoints lie there."""

    def stop_in_the_middle(fork: int, step: int) -> None:
        if step > STEPS / 3:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        tune(quadratic, steps=STEPS, lr=LR, cost=COST, study=folder, quiet=True, on_step=stop_in_the_middle)
    return folder


def sound_studies(root: Path) -> list[Path]:
    """The studies that are varied."""
    for shape, events in {"family": 60, "population": 330}.items():
        write_study(root / shape, shape, events)
    return [sound_study(root / "interrupted"), root / "family", root / "population"]


class Outcome(NamedTuple):
    """What became of a variation: its study and name, what went wrong, and the seconds it took."""

    study: str
    name: str
    problems: list[str]
    seconds: float


def outcomes(studies: Sequence[Path], every: int, jobs: int) -> Generator[Outcome]:
    """Each so-many-th variation of some studies, in any order, tried by so many processes."""
    fork = multiprocessing.get_context("fork")  # shares what is imported
    with ProcessPoolExecutor(jobs, mp_context=fork) as pool:
        tasks = [pool.submit(_try, study, i) for study in studies for i in range(0, len(variations(study)), every)]
        for task in as_completed(tasks):
            yield task.result()


def _try(study: Path, index: int) -> Outcome:
    copy = _own_copy(study)
    variation = _variations(copy)[index]
    began = time.perf_counter()
    faulthandler.dump_traceback_later(10 * LIMIT, exit=True)
    try:
        problems = problems_with(copy, variation)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return Outcome(study.name, variation.name, problems, time.perf_counter() - began)


@cache
def _own_copy(study: Path) -> Path:
    """A copy of a sound study for this process, alone in a folder."""
    copy = study.parent.with_name(f"process {os.getpid()}") / study.name / study.name
    shutil.copytree(study, copy)
    return copy


_variations = cache(variations)


def problems_with(study: Path, variation: Variation, *, whole: bool = True) -> list[str]:
    """What goes wrong with a variation of a study; nothing if it is handled.

    Args:
        study: the sound study; what lies beside it must not change.
        variation: what is changed.
        whole: whether all commands are run, or only the fast ones.
    """
    root = study.parent
    folder, out = root / "stranger" / DEPTH / "study", root / "out" / DEPTH
    for left in ("stranger", "out"):
        shutil.rmtree(root / left, ignore_errors=True)
    (root / "outside").write_text("mine")
    out.mkdir(parents=True)
    write_variation(study, folder, variation)
    before, found = _files_outside(root), list[str]()
    with chdir(out):
        for what, act in _actions(folder, whole=whole):
            began = time.monotonic()
            try:
                with _limited(LIMIT):
                    found += [f"{what}: {problem}" for problem in act()]
            except Exception as error:
                found.append(f"{what}: {type(error).__name__}: {error}")
            if time.monotonic() - began >= LIMIT:  # even if the error was taken for one of the training
                found.append(f"{what}: not done after {LIMIT} s")
    found += [f"made {path}" for path in root.rglob(f"*{MARK}*")]
    if _files_outside(root) != before:
        found.append("files outside its folder changed")
    return found


def _actions(folder: Path, *, whole: bool) -> Generator[tuple[str, Callable[[], list[str]]]]:
    yield "show", lambda: _command("show", str(folder), on_terminal=True)
    yield "show --json", lambda: _command("show", str(folder), "--json")
    for kind in EXPORTS:
        yield f"export {kind}", lambda kind=kind: _export(folder, kind)
    yield "serve", lambda: _page(folder)
    if whole:
        yield "report", lambda: _report(folder)
        yield "replay", lambda: _command("replay", str(folder), FACTORY, on_terminal=True)
    yield "continue", lambda: _command("tune", FACTORY, *OPTIONS, "--study", str(folder), on_terminal=True)


def _command(*arguments: str, on_terminal: bool = False) -> list[str]:
    """What goes wrong with a command: an exception that nobody caught, or control characters in what it prints."""
    done = CliRunner(env=ON_TERMINAL if on_terminal else {}).invoke(app, arguments)
    found = list[str]()
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        found.append(f"raised {type(done.exception).__name__}: {done.exception}")
    output = OF_DISPLAY.sub("", done.output) if on_terminal else done.output
    if controls := {c for c in output if not c.isprintable() and c != "\n"}:
        found.append(f"printed {controls}")
    return found


def _export(folder: Path, kind: str) -> list[str]:
    file = Path(f"schedule.{kind}")
    found = _command("export", str(folder), "--format", kind, "--output", str(file))
    if file.exists() and kind == "python":
        space = dict[str, Any]()
        exec(compile(file.read_text(), str(file), "exec"), space)
        found += [] if isinstance(space["learning_rate"](0), float) else ["its rate is no number"]
    if file.exists() and MARK in file.read_text():
        found.append("text of the study is in it")
    return found


def _report(folder: Path) -> list[str]:
    found = _command("report", str(folder), "--output", "report.html")
    page = Path("report.html").read_text() if Path("report.html").exists() else ""
    return found + [f"the report has {markup}" for markup in MARKUP if markup in page]


def _page(folder: Path) -> list[str]:
    """What goes wrong on the routes of the page: an error of the server, markup in a page, a control character."""
    found = list[str]()
    client = TestClient(make_app(Catalogue([folder.parent])), base_url="http://127.0.0.1")
    paths = ("/", f"/study/{folder.name}", "/studies.json", "/costs.json", *(f"/{r}/{folder.name}" for r in ROUTES))
    for path in paths:
        answer = client.get(path)
        if answer.status_code >= 500:
            found.append(f"{path} answers {answer.status_code}")
        if re.search(r"[^\n\t\x20-\x7e\x80-\U0010ffff]", answer.text):
            found.append(f"{path} has control characters")
        if "html" in answer.headers["content-type"]:
            found += [f"{path} has {markup}" for markup in MARKUP if markup in answer.text]
    return found


@contextmanager
def _limited(seconds: int) -> Generator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def _files_outside(root: Path) -> dict[str, bytes]:
    """The files beside the stranger's folder and our own output."""
    own = [
        path
        for path in root.rglob("*")
        if path.is_file() and path.relative_to(root).parts[0] not in ("stranger", "out")
    ]
    return {str(path): path.read_bytes() for path in own}


def with_progress(found: Iterable[Outcome], total: int) -> Generator[Outcome]:
    """The same outcomes, with a line on stderr for every hundredth and for each that is mishandled."""
    began = time.monotonic()
    for count, outcome in enumerate(found, start=1):
        if count % 100 == 0 or outcome.problems:
            what = ascii(f"{outcome.study}, {outcome.name}: {outcome.problems}") if outcome.problems else ""
            print(f"{count} of {total} after {time.monotonic() - began:.0f} s {what}", file=sys.stderr, flush=True)
        yield outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th variation of a study")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    torch.set_num_threads(1)  # a pool of threads does not survive a fork
    print(machine())
    with tempfile.TemporaryDirectory() as temporary:
        studies = sound_studies(Path(temporary) / "sound")
        total = sum(len(variations(study)[:: options.every]) for study in studies)
        found = list(with_progress(outcomes(studies, options.every, options.jobs), total))
    print_outcomes(found)
    print_results()


def print_outcomes(found: Sequence[Outcome]) -> None:
    """A table by study and place, and what was mishandled."""
    rows = dict[tuple[str, str], list[int]]()
    for outcome in sorted(found):
        count = rows.setdefault((outcome.study, outcome.name.split()[0]), [0, 0])
        count[0] += 1
        count[1] += bool(outcome.problems)
    header = ["study", "where", "variations", "mishandled"]
    print(f"\n{table(header, [[*where, *count] for where, count in rows.items()])}\n")
    failures = [f"{outcome.study}, {outcome.name}: {problem}" for outcome in found for problem in outcome.problems]
    print("\n".join(map(ascii, failures)) or "nothing ran, nothing was written outside, nothing hung")
    seconds = [outcome.seconds for outcome in found]
    print(f"seconds for a variation: median {median(seconds):.2f}, most {max(seconds):.1f}\n")
    result("hostile_variations", len(found))
    result("hostile_mishandled", sum(bool(outcome.problems) for outcome in found))


if __name__ == "__main__":
    main()
