"""Figures as files. An HTML file needs nothing but plotly; PNG, SVG and PDF are drawn by a browser.

Kaleido starts the browser, Chrome or Chromium. It is small, and the browser is the reader's own or not there at all, so
every caller checks the path before the work that the figure shows.
"""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paceline.errors import InputError
from paceline.views.figures.style import Figure, graph_objects

DRAWN_BY_BROWSER = (".png", ".svg", ".pdf")
WIDTH, SCALE = 900, 2


def check_figure_path(path: Path) -> None:
    """Refuse a path that `write_figure` could not write to here.

    Args:
        path: its ending says the format: .html, .png, .svg or .pdf.
    """
    graph_objects()
    ending = path.suffix.lower()
    if ending == ".html":
        return
    if ending not in DRAWN_BY_BROWSER:
        raise InputError(
            f"expected a figure that ends in .html, .png, .svg or .pdf, got {str(path)!r}: give it such a name"
        )
    page = path.with_suffix(".html").name
    if find_spec("kaleido") is None:
        raise InputError(f"a {ending} figure needs kaleido: pip install 'paceline[plot]', or name it {page}")
    if _browser() is None:
        raise InputError(f"a {ending} figure needs Chrome or Chromium, found neither: install one, or name it {page}")


def write_figure(figure: Figure, path: Path, *, width: int = WIDTH, scale: float = SCALE) -> None:
    """Write a figure to a file.

    Args:
        figure: the figure, with a height.
        path: its ending says the format: .html, .png, .svg or .pdf.
        width: of an image, in pixels of a page; an HTML page adapts to its reader's window.
        scale: pixels of an image for each pixel of a page.
    """
    check_figure_path(path)
    if path.suffix.lower() == ".html":
        config = {"displaylogo": False, "responsive": True}
        figure.write_html(path, include_plotlyjs=True, config=config, default_height=figure.layout.height)
    else:
        figure.write_image(path, width=width, height=figure.layout.height, scale=scale)


def _browser() -> str | None:
    """The browser that kaleido would start."""
    chromium: Any = import_module("choreographer.browsers").Chromium
    return os.environ.get("BROWSER_PATH") or chromium.find_browser(skip_local=False)
