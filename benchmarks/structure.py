"""Counts what makes the package easy to find one's way in, at any commit.

    python -m benchmarks.structure                  # the working tree
    python -m benchmarks.structure 5413179 main     # two commits side by side
    python -m benchmarks.structure --list           # with the names and imports that are counted

What is counted, of the Python files in src/paceline:

- files, lines, and lines per file: median, 90 % and most.
- modules with a test file of their own: src/paceline/a/b.py is tested by tests/a/test_b.py. `__init__` and `__main__`
  do not count.
- imports past a package's door: `from paceline.model.tasks import x` in a package other than `paceline.model`. All
  imports from one package of `paceline` into another are counted beside them.
- names that stand for two things: a public class, function or constant that two modules define at their top level, and
  a module name that two packages use.
- files of one decision: in a small study, the files that run between the last value that a training reports before a
  decision and the first step after it. A hop is a function of another file entered or resumed. Comprehensions and
  lambdas count as the function that holds them, since Python 3.12 runs most of them there.
- words of README.md, and megabytes of all files.

This needs nothing but the standard library. The decisions are traced in a process of their own, with the package of
that commit and what it needs.
"""

import argparse
import ast
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/paceline")


class Import(NamedTuple):
    """A package of `paceline` imported by another one."""

    by: str
    module: str

    @property
    def is_past_the_door(self) -> bool:
        return self.module.count(".") > 1


class Structure(NamedTuple):
    """What is counted of one tree."""

    lines: list[int]
    untested: list[str]
    modules: int
    imports: list[Import]
    names: dict[str, list[str]]
    hops: list[tuple[int, int]]
    words: int
    megabytes: float


def measure(tree: Path, files: list[Path]) -> Structure:
    sources = {path: path.read_text() for path in sorted((tree / PACKAGE).rglob("*.py"))}
    parsed = {path.relative_to(tree / PACKAGE): ast.parse(text) for path, text in sources.items()}
    modules = [path for path in parsed if path.stem not in ("__init__", "__main__")]
    return Structure(
        lines=[len(text.splitlines()) for text in sources.values()],
        untested=[str(path) for path in modules if not has_test(tree, path)],
        modules=len(modules),
        imports=[found for path, module in parsed.items() for found in imports_of(path, module, tree)],
        names=names_of_two_things(parsed),
        hops=trace_decisions(tree),
        words=len((tree / "README.md").read_text().split()),
        megabytes=sum(path.lstat().st_size for path in files) / 1e6,
    )


def has_test(tree: Path, module: Path) -> bool:
    return (tree / "tests" / module.parent / f"test_{module.name}").exists()


def imports_of(path: Path, module: ast.Module, tree: Path) -> Iterator[Import]:
    """The imports from other packages, one for each statement."""
    own = path.parts[0].removesuffix(".py")
    for node in ast.walk(module):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("paceline."):
            continue
        package = node.module.split(".")[1]
        if package != own and (tree / PACKAGE / package).is_dir():
            yield Import(str(path), node.module)


def names_of_two_things(parsed: dict[Path, ast.Module]) -> dict[str, list[str]]:
    """Public names with the two or more places that define them."""
    places = defaultdict[str, list[str]](list)
    for path, module in parsed.items():
        if not path.stem.startswith("_"):
            places[f"{path.stem}.py"].append(str(path.parent))
        for name in {name for node in module.body for name in defined(node) if not name.startswith("_")}:
            places[name].append(str(path))
    return {name: where for name, where in sorted(places.items()) if len(where) > 1}


def defined(node: ast.stmt) -> list[str]:
    """The names that a statement of a module defines; an import defines none."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return [node.name]
    targets = {ast.Assign: lambda: node.targets, ast.AnnAssign: lambda: [node.target]}.get(type(node), list)()
    return [target.id for target in targets if isinstance(target, ast.Name)]


# what a decision visits


def trace_decisions(tree: Path) -> list[tuple[int, int]]:
    """Files and hops of each decision, by the package of this tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "--trace"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    return [(files, hops) for files, hops in json.loads(done.stdout)]


def training() -> Any:
    """The first example of the README."""
    import torch

    import paceline

    torch.manual_seed(0)
    model, x = torch.nn.Linear(20, 2), torch.randn(1024, 20)
    y = (x.sum(dim=1) > 0).long()

    def loss(model: Any, batch: Any) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

    return paceline.TorchTraining(
        model,
        torch.optim.AdamW(model.parameters()),
        batches=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:512], y[:512]), 32, shuffle=True),
        loss=loss,
        evaluate=lambda model: loss(model, (x[512:], y[512:])),
    )


class Tracer:
    """Follows a study through the files of the package; `decisions` holds files and hops of each decision."""

    def __init__(self) -> None:
        import paceline

        self.package = str(Path(paceline.__file__).parent)
        self.advance = paceline.TorchTraining.advance.__code__
        self.decisions = list[tuple[int, int]]()
        self.path = list[str]()  # the files of the functions entered since the last value
        self.reported = False  # the first decision has no value before it
        self.decided = False

    def on_event(self, event: Any) -> None:
        self.decided |= type(event).__name__ == "Decided"

    def on_call(self, frame: Any, event: str, returned: Any) -> None:
        code = frame.f_code
        if event == "return" and code is self.advance and returned is not None:
            self.path, self.reported = [], True  # it yields a value
        if event != "call" or not code.co_filename.startswith(self.package) or code.co_name.startswith("<"):
            return
        if code is self.advance and self.decided:
            if self.reported:
                self.decisions.append((len(set(self.path)), sum(a != b for a, b in pairwise(self.path))))
            self.decided = False
        self.path.append(code.co_filename)


def print_trace() -> None:
    import paceline

    tracer = Tracer()
    logging.getLogger("paceline").setLevel(logging.WARNING)
    sys.setprofile(tracer.on_call)
    paceline.tune(training, steps=400, lr=(1e-4, 1.0), seed=3, on_event=tracer.on_event)
    sys.setprofile(None)
    print(json.dumps(tracer.decisions))


# commits


@contextmanager
def tree_of(commit: str | None) -> Iterator[tuple[Path, list[Path]]]:
    """The files of a commit in a folder of their own, or those of the working tree."""
    if commit is None:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
        yield ROOT, [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]
        return
    with tempfile.TemporaryDirectory() as name:
        archive = subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE)
        subprocess.run(["tar", "-x", "-C", name], stdin=archive.stdout, check=True)
        if archive.wait():
            sys.exit(f"git archive {commit} failed: name a commit of this repository")
        yield Path(name), [path for path in Path(name).rglob("*") if path.is_file()]


def rows(found: Structure) -> dict[str, str]:
    past = sum(one.is_past_the_door for one in found.imports)
    tested = found.modules - len(found.untested)
    files, hops = zip(*found.hops, strict=True)
    return {
        "files": f"{len(found.lines)}",
        "lines": f"{sum(found.lines):,}",
        "lines per file: median": f"{median(found.lines):.0f}",
        "lines per file: 90 %": f"{quantiles(found.lines, n=10)[-1]:.0f}",
        "lines per file: most": f"{max(found.lines)}",
        "modules with a test file": f"{tested} of {found.modules} ({tested / found.modules:.0%})",
        "imports past a package's door": f"{past} of {len(found.imports)}",
        "names that stand for two things": f"{len(found.names)}",
        "files of one decision": span(files),
        "hops of one decision": span(hops),
        "words of the README": f"{found.words:,}",
        "megabytes of all files": f"{found.megabytes:.1f}",
    }


def span(numbers: "tuple[int, ...]") -> str:
    return f"{min(numbers)} to {max(numbers)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commits", nargs="*", help="the working tree if there is none")
    parser.add_argument("--list", action="store_true", help="print the names, imports and modules that are counted")
    parser.add_argument("--trace", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        print_trace()
        return
    columns = dict[str, Structure]()
    for commit in options.commits or [None]:
        with tree_of(commit) as (tree, files):
            columns[commit or "working tree"] = measure(tree, files)
    tables = [rows(found) for found in columns.values()]
    print(" " * 34 + "".join(f"{name[:20]:>22}" for name in columns))
    for label in tables[0]:
        print(f"{label:34}" + "".join(f"{table[label]:>22}" for table in tables))
    if options.list:
        print_lists(list(columns.values())[-1])


def print_lists(found: Structure) -> None:
    print("\nnames that stand for two things")
    for name, where in found.names.items():
        print(f"  {name}: {', '.join(where)}")
    print("\nimports past a package's door")
    for one in found.imports:
        if one.is_past_the_door:
            print(f"  {one.by}: {one.module}")
    print("\nmodules without a test file")
    for name in found.untested:
        print(f"  {name}")


if __name__ == "__main__":
    main()
