"""What is installed, and whether the files at the top of the repository agree with it."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import yaml

import paceline

ROOT = Path(__file__).parents[1]


def read(name: str) -> str:
    return (ROOT / name).read_text()


def pinned() -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", read("constraints.txt"), re.MULTILINE))


def test_type_checkers_are_told_that_the_package_has_annotations() -> None:
    assert files("paceline").joinpath("py.typed").is_file()


def test_version_changelog_and_citation_agree() -> None:
    release = paceline.__version__.removesuffix(".dev0")
    sections = re.findall(r"^## (\S+) \((\S+)\)$", read("CHANGELOG.md"), re.MULTILINE)
    assert sections[0][0] == release
    assert (sections[0][1] == "unreleased") == paceline.__version__.endswith(".dev0")
    assert sections[1:] == [("0.1.0", "2026-11-18")]
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == paceline.__version__
    assert citation["authors"] == [{"name": "The Paceline authors"}]
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == [
        "Picheny",
        "Dutordoir",
        "Artemev",
        "Durrande",
    ]


def test_hooks_run_the_pinned_ruff() -> None:
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert [hook["additional_dependencies"] for hook in hooks] == [[f"ruff=={pinned()['ruff']}"]] * 2


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted} - {"paceline"}
    known = {name.lower().replace("_", "-") for name in pinned()}
    assert {name for name in names if name.lower() not in known} == set()
