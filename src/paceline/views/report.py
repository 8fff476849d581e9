"""A report: one HTML file that needs nothing else, to send or to keep beside a paper.

Nothing in a journal is trusted: text is escaped, figures travel as JSON that no script tag can leave, and the page's
content policy runs no script but the two that are named in it by their digests, and loads nothing from anywhere.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib import import_module, resources
from pathlib import Path

from rich.table import Table
from rich.text import Text

from paceline.study import Event, StudyState
from paceline.views.captions import CAPTIONS
from paceline.views.data import StudyView, read
from paceline.views.explained import all_explained
from paceline.views.figures import DARK_FOR, FIGURES, Figure, costs
from paceline.views.figures.style import graph_objects
from paceline.views.text import fork_table, result_in_words, settings_in_words


def report(studies: Mapping[str, Sequence[Event]]) -> str:
    """The page of one or several studies: their events, by name (their folders)."""
    graph_objects()
    figures: dict[str, Figure] = {}
    views = {name: read(events) for name, events in studies.items()}
    several = [_several(views, figures)] if len(views) > 1 else []
    parts = [_study(name, view, studies[name], f"s{i}", figures) for i, (name, view) in enumerate(views.items())]
    body = "".join([*several, *parts])
    pages = resources.files("paceline.views") / "page"
    style, controls, draw = ((pages / name).read_text() for name in ("report.css", "controls.js", "report.js"))
    plotly: Callable[[], str] = import_module("plotly.offline").get_plotlyjs
    library = _inline(plotly())
    drawing = _inline(controls + draw)
    data = json.dumps({"pairs": {a.lower(): b for a, b in DARK_FOR.items()}})
    content = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_digest(library)} {_digest(drawing)}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    title = escape(", ".join(views))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}: paceline report</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n"
        f"{_json('colours', data)}{''.join(_json(f'data-{name}', f.to_json()) for name, f in figures.items())}"
        f"<script>{library}</script>\n<script>{drawing}</script>\n</body>\n</html>\n"
    )


def _several(views: Mapping[str, StudyView], figures: dict[str, Figure]) -> str:
    """What the studies cost and came to, and where to find each."""
    short = {Path(name).name: view for name, view in views.items()}
    figures["costs"] = _untitled(costs(short if len(short) == len(views) else views))
    links = "".join(f'<li><a href="#s{i}">{escape(name)}</a></li>' for i, name in enumerate(views))
    return (
        f"<header><h1>{len(views)} studies</h1><ul>{links}</ul></header>\n{_figure('costs', 'costs', figures['costs'])}"
    )


def _study(name: str, view: StudyView, events: Sequence[Event], key: str, figures: dict[str, Figure]) -> str:
    drawn = {what: draw(view) for what, draw in FIGURES.items()}
    figures.update({f"{key}-{what}": _untitled(figure) for what, figure in drawn.items() if figure is not None})
    shown = "".join(_figure(f"{key}-{what}", what, figure) for what, figure in drawn.items() if figure is not None)
    words = "".join(
        _table(part) if isinstance(part, Table) else f"<p>{escape(str(part))}</p>\n"
        for part in result_in_words(view, Path(name))
    )
    settings = escape(json.dumps(view.settings, indent=1, ensure_ascii=False))
    asked = f"<p>{escape(settings_in_words(view))}</p>" if view.settings else ""
    return (
        f'<article id="{key}">\n<h1>{escape(name)}</h1>\n{asked}\n'
        f"<section><h2>Result</h2>\n{words}</section>\n{shown}"
        f"<section><h2>Decisions</h2>\n{_decisions(view, events)}</section>\n"
        f"<section><h2>{'Runs' if view.tasks else 'Forks'}</h2>\n{_table(fork_table(view, view.forks))}</section>\n"
        f"<section><h2>Settings</h2>\n<details><summary>as they were journaled</summary><pre>{settings}</pre></details>"
        "</section>\n</article>\n"
    )


def _untitled(figure: Figure) -> Figure:
    """Without its title: the page has a heading of its own."""
    return figure.update_layout(title_text="", margin_t=max(figure.layout.margin.t - 26, 30))


def _figure(key: str, what: str, figure: Figure) -> str:
    heading, sentence = CAPTIONS[what]
    note = f" In this figure {figure.layout.meta}." if figure.layout.meta else ""
    return (
        f'<section><h2>{heading}</h2>\n<figure><div class="figure" id="{key}" role="img" '
        f'aria-label="{heading}" style="height:{figure.layout.height}px"></div>'
        f"<figcaption>{sentence}{note}</figcaption></figure></section>\n"
    )


def _decisions(view: StudyView, events: Sequence[Event]) -> str:
    """One block a decision, its sentences below it."""
    blocks = list[str]()
    for decision in all_explained(StudyState.of(events)):
        lines = "".join(f"<li>{escape(sentence)}</li>" for sentence in decision.sentences)
        at = "" if view.tasks else f", step {decision.step:,}"
        took = f"{1000 * decision.seconds:.0f} ms"
        blocks.append(
            f"<li><strong>decision {decision.round}{at}</strong> <small>{took}</small><ul>{lines}</ul></li>\n"
        )
    return f'<ol class="decisions">\n{"".join(blocks)}</ol>\n'


def _table(table: Table) -> str:
    """A table made for terminals, as HTML: the same words in both."""
    columns = [(_words(column.header), [_words(cell) for cell in column.cells]) for column in table.columns]
    head = "".join(f'<th scope="col">{escape(header)}</th>' for header, _ in columns)
    sides = ["number" if column.justify == "right" else "words" for column in table.columns]
    rows = zip(*(cells for _, cells in columns), strict=True)
    body = "".join(
        f"<tr>{''.join(f'<td class={side}>{escape(cell)}</td>' for side, cell in zip(sides, row, strict=True))}</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def _words(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _json(key: str, text: str) -> str:
    """Data for the page's script: no character in it can end the element."""
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{key}">{safe}</script>\n'


def _inline(script: str) -> str:
    """A script as it may stand between script tags."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
