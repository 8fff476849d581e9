"""Hooks of the documentation's site: the README is its first page, and figures beside the code are part of it.

In the repository pages link to what lies outside `docs/` (`../experiments/results/x.png`), so that they can be read
there as they are. For the site such files are taken in, and the links bent. Tables of settings are made from the code.
"""

import posixpath
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from paceline import settings

ROOT = Path(__file__).parents[1]
SETTINGS = re.compile(r"<!-- settings of (\w+) -->")
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
TAKEN = (".png", ".txt", ".md", ".jsonl")
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "LICENSE": "license.txt"}


@cache
def _outside() -> dict[str, str]:
    """Files outside `docs/` that pages link to, by path in the repository: where they are in the site."""
    found = dict(PAGES)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for _, link, _ in LINK.findall(page.read_text()):
            path = (page.parent / link).resolve()
            inside = path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs")
            if inside and path.is_file() and path.suffix in TAKEN and path.name != "README.md":
                name = path.relative_to(ROOT).as_posix()
                found.setdefault(name, f"files/{name}")
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take in the README and what lies outside."""
    _outside.cache_clear()  # pages may have changed since the last build
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text()))
    for name, where in _outside().items():
        files.append(File.generated(config, where, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Bend links to what was taken in; what is not part of the site becomes plain text."""
    here = page.file.src_uri
    source = {"index.md": "README.md", **{where: name for name, where in PAGES.items()}}.get(here, f"docs/{here}")
    outside = _outside()

    def bent(match: re.Match[str]) -> str:
        link = match[2]
        if re.match(r"[a-z]+:", link):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        where = target.removeprefix("docs/") if target.startswith("docs/") else outside.get(target)
        where = "index.md" if target == "README.md" else where
        if where is None:
            return "](#)" if not match[3].strip(")") else f"]({match[3]}"
        return f"{match[1]}{posixpath.relpath(where, posixpath.dirname(here) or '.')}{match[3]}"

    return SETTINGS.sub(_settings_table, LINK.sub(bent, markdown))


def _settings_table(match: re.Match[str]) -> str:
    """The fields of a settings class as a table: name, default, meaning."""
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for field in fields(getattr(settings, match[1])):
        default = field.metadata["default_text"] or f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {field.metadata['help']} |")
    return "\n".join(rows)
