"""Who may import whom (docs/design.md): one way through, from traces to what is done with them."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "paceline"
MAY_IMPORT = {
    "safe_text": set(),
    "errors": {"safe_text"},
    "files": set(),
    "json_fields": {"errors"},
    "shapes": {"errors", "json_fields"},
    "settings": {"errors"},
    "traces": {"errors", "json_fields", "shapes"},
    "model": {"errors", "shapes", "traces"},
    "strategy": {"errors", "settings", "shapes", "traces", "model", "study"},
    "training": {"errors", "files", "traces"},
    "runner": {"errors", "files", "traces", "study", "training"},
    "study": {"errors", "files", "json_fields", "traces"},
    "tuner": {"errors", "settings", "shapes", "traces", "model", "strategy", "runner", "study", "training"},
    "integrations": {
        "errors",
        "files",
        "shapes",
        "traces",
        "model",
        "strategy",
        "runner",
        "study",
        "training",
        "tuner",
    },
    "problems": {"errors", "traces", "model", "training"},
    "testing": {"errors", "traces", "problems", "runner", "strategy", "study", "training", "tuner"},
    "views": {"errors", "json_fields", "safe_text", "shapes", "traces", "study"},
    "factory": {"errors"},
    "replay": {"errors", "traces", "training", "runner", "views"},
    "demo": {"shapes", "traces", "strategy", "study", "training", "tuner", "problems", "views"},
    "planning": {"errors", "shapes", "traces", "model", "study", "integrations", "views"},
    "cli": {
        "safe_text",
        "errors",
        "settings",
        "traces",
        "strategy",
        "runner",
        "study",
        "training",
        "tuner",
        "views",
        "factory",
        "replay",
        "planning",
        "demo",
    },
    "__main__": {"cli"},
    "__init__": {"errors", "traces", "model", "strategy", "study", "training", "tuner", "integrations"},
}
# inside a function, or for types only: `study.plot` and `schedule.plot` draw, reading a study or calling a schedule
# does not; settings are read by a command line that is asked for help
WHEN_CALLED = {"study": {"views"}, "traces": {"views"}, "tuner": {"views"}, "settings": {"shapes", "traces", "model"}}
NUMPY_ONLY = {"settings", "traces", "study"}
NO_TORCH = {"views", "cli", "factory"}
HEAVY = {"torch", "scipy", "gpytorch", "sklearn", "matplotlib", "rich"}


def layer(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path, *, at_once: bool = False) -> set[str]:
    """The modules that a file imports, anywhere in it or `at_once`: not for types only, and not when something runs."""
    names: set[str] = set()
    tree = ast.parse(path.read_text())
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module or "")
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    own = layer(path)
    assert own in MAY_IMPORT, f"{own} is not in the layout: add it to docs/design.md and here"
    inside = {name.split(".")[1] for name in imported(path) if name.startswith("paceline.")}
    assert inside - {own} <= MAY_IMPORT[own] | WHEN_CALLED.get(own, set())
    at_once = {name.split(".")[1] for name in imported(path, at_once=True) if name.startswith("paceline.")}
    assert at_once - {own} <= MAY_IMPORT[own]
    if own in NUMPY_ONLY:
        assert not {name.split(".")[0] for name in imported(path)} & HEAVY
    if own in NO_TORCH:
        assert "torch" not in {name.split(".")[0] for name in imported(path)}
