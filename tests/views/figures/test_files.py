"""Figures as files."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from paceline import InputError
from paceline.views.figures import files
from paceline.views.figures.files import check_figure_path, write_figure
from paceline.views.figures.plan import plan_figure
from tests.views.plans import VIEW

needs_browser = pytest.mark.skipif(
    find_spec("kaleido") is None or files._browser() is None, reason="kaleido or its browser is not installed"
)


def test_a_page_holds_the_figure_and_the_library(tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    write_figure(plan_figure(VIEW), path)
    page = path.read_text()
    assert "the plan: forecast and 90 % band" in page
    assert '<script src="http' not in page
    assert len(page) > 1_000_000  # plotly's script


@needs_browser
@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF")])
def test_images_are_drawn_by_the_browser(tmp_path: Path, ending: str, start: bytes) -> None:
    path = tmp_path / f"plan.{ending}"
    write_figure(plan_figure(VIEW), path)
    assert path.read_bytes().startswith(start)


def test_other_endings_are_refused() -> None:
    check_figure_path(Path("plan.HTML"))
    with pytest.raises(InputError, match=r"ends in .html, .png, .svg or .pdf, got 'plan.doc': give it such a name"):
        check_figure_path(Path("plan.doc"))


def test_without_plotly_kaleido_or_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "find_spec", lambda name: object())
    monkeypatch.setattr(files, "_browser", lambda: None)
    with pytest.raises(InputError, match="needs Chrome or Chromium, found neither: install one, or name it plan"):
        check_figure_path(Path("runs/plan.png"))
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"a \.png figure needs kaleido: pip install"):
        check_figure_path(Path("plan.PNG"))
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(InputError, match="a figure needs plotly, which is not installed: pip install"):
        check_figure_path(Path("plan.html"))
