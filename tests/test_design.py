"""The tree in docs/design.md is that of the package: each module with the first sentence of its docstring.

After a change of modules or of their first sentences, `python -m tests.test_design` writes the tree anew.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, PAGE = ROOT / "src" / "paceline", ROOT / "docs" / "design.md"
BLOCK = re.compile(r"```text\nsrc/paceline/\n(.*?)```", re.DOTALL)


def first_sentence(module: Path) -> str:
    """The first sentence of a module's docstring, without its full stop."""
    summary = (ast.get_docstring(ast.parse(module.read_text())) or "").split("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[^.])\.(?: |$)", summary, maxsplit=1)[0]


def lines_of(folder: Path, depth: int = 1) -> list[str]:
    """A line for each module and package below a folder, packages first."""
    entries = [
        path for path in sorted(folder.iterdir()) if path.name not in ("__pycache__", "__init__.py", "__main__.py")
    ]
    packages = [path for path in entries if (path / "__init__.py").exists()]
    modules = [path for path in entries if path.suffix == ".py"]
    indent, lines = "  " * depth, list[str]()
    for package in packages:
        lines += [f"{indent}{package.name + '/':<22}{first_sentence(package / '__init__.py')}".rstrip()]
        lines += lines_of(package, depth + 1)
    return lines + [f"{indent}{module.stem:<22}{first_sentence(module)}".rstrip() for module in modules]


def tree() -> str:
    return "\n".join(lines_of(PACKAGE)) + "\n"


def test_the_tree_of_the_design_is_the_tree() -> None:
    block = BLOCK.search(PAGE.read_text())
    assert block is not None
    assert block[1].splitlines() == tree().splitlines(), "run `python -m tests.test_design` to write it anew"


def test_each_module_says_what_it_is_for() -> None:
    silent = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not first_sentence(path)]
    assert silent == []


if __name__ == "__main__":
    page = PAGE.read_text()
    PAGE.write_text(BLOCK.sub(lambda _: f"```text\nsrc/paceline/\n{tree()}```", page))
