"""How many lines a user writes for a method: those of its adapter, without blank lines, comments and docstrings."""

import ast
from pathlib import Path

HERE = Path(__file__).parent
# what a user writes for each method, a shared training step included; counted in the files, so no package is needed
CODE: dict[str, tuple[tuple[str, str], ...]] = {
    "horizon": (("_peer_search.py", "horizon"),),
    "Optuna": (("_peer_search.py", "with_optuna"),),
    "PBT": (("_peer_ray.py", "Trial"), ("_peer_ray.py", "pbt"), ("_peer_ray.py", "population")),
    "PB2": (("_peer_ray.py", "Trial"), ("_peer_ray.py", "pb2"), ("_peer_ray.py", "population")),
    "Schedule-Free": (("_peer_single.py", "schedule_free"), ("../benchmarks/single_run.py", "update")),
    "Prodigy": (("_peer_single.py", "prodigy"), ("../benchmarks/single_run.py", "update")),
    "D-Adaptation": (("_peer_single.py", "d_adaptation"), ("../benchmarks/single_run.py", "update")),
    "ReduceLROnPlateau": (("_peer_single.py", "plateau"), ("../benchmarks/single_run.py", "update")),
}


def lines_of(method: str) -> int:
    """Lines of the adapter of a method."""
    return sum(_lines((HERE / file).read_text(), name) for file, name in CODE[method])


def _lines(source: str, name: str) -> int:
    """Lines of one function or class that hold code."""
    definition = next(node for node in ast.parse(source).body if getattr(node, "name", "") == name)
    text = ast.get_source_segment(source, definition) or ""
    docstring_lines = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            docstring_lines |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and at not in docstring_lines for at, line in lines
    )
