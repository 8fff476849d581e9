"""A report: one HTML file that loads nothing, to send or to keep beside a paper.

A journal may come from a stranger. Its text is escaped here for HTML, and in `figures.labels` for figures. Figures are
JSON that cannot end its element. The content policy allows the two scripts of the page, by their digests, and nothing
else.
"""

import base64
import hashlib
import html
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module, resources
from pathlib import Path

from rich.table import Table
from rich.text import Text

from paceline.safe_text import safe_text
from paceline.study import Event, StudyState
from paceline.views.captions import CAPTIONS
from paceline.views.data import StudyView
from paceline.views.decision_text import decision_texts
from paceline.views.figures import DARK_COLOURS, FIGURES, Figure, costs, graph_objects
from paceline.views.projection import study_view
from paceline.views.text import describe_result, describe_settings, fork_table

TITLE_HEIGHT, MIN_TOP_MARGIN = 26, 30  # pixels


def html_report(studies: Mapping[str, Sequence[Event]]) -> str:
    """The page of some studies, whose figures are drawn in the reader's browser.

    Args:
        studies: the events of each study, by its name or folder.
    """
    graph_objects()  # fails at once without plotly
    figures = dict[str, Figure]()
    states = {name: StudyState.of(events) for name, events in studies.items()}
    views = {name: study_view(state) for name, state in states.items()}
    parts = [_comparison(views, figures)] if len(views) > 1 else []
    for i, (name, view) in enumerate(views.items()):
        parts.append(_study(name, view, states[name], f"s{i}", figures))
    plotly: Callable[[], str] = import_module("plotly.offline").get_plotlyjs
    library, script = _inline_script(plotly()), _inline_script(_page_file("controls.js") + _page_file("report.js"))
    colours = json.dumps({"pairs": {light.lower(): dark for light, dark in DARK_COLOURS.items()}})
    data = [_json_element("colours", colours)]
    data += [_json_element(f"data-{key}", figure.to_json()) for key, figure in figures.items()]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_content_policy(library, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_escaped(', '.join(views))}: paceline report</title>\n"
        f"<style>\n{_page_file('report.css')}</style>\n</head>\n<body>\n<main>\n{''.join(parts)}</main>\n"
        f"{''.join(data)}<script>{library}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def _escaped(text: str) -> str:
    return html.escape(safe_text(text, keep="\n"))


def _page_file(name: str) -> str:
    return (resources.files("paceline.views") / "page" / name).read_text()


def _content_policy(*scripts: str) -> str:
    """What the browser may do with the page: run these scripts, and nothing else."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(_digest(script) for script in scripts)}",
            "style-src 'unsafe-inline'",
            "img-src data: blob:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _comparison(views: Mapping[str, StudyView], figures: dict[str, Figure]) -> str:
    """Cost against value of the studies, and a link to each."""
    by_folder_name = {Path(name).name: view for name, view in views.items()}
    figures["costs"] = _without_title(costs(by_folder_name if len(by_folder_name) == len(views) else views))
    links = "".join(f'<li><a href="#s{i}">{_escaped(name)}</a></li>' for i, name in enumerate(views))
    header = f"<header><h1>{len(views)} studies</h1><ul>{links}</ul></header>\n"
    return header + _figure("costs", "costs", figures["costs"])


def _study(name: str, view: StudyView, state: StudyState, key: str, figures: dict[str, Figure]) -> str:
    """The part of the page about one study; its figures are added to `figures`."""
    sections = list[str]()
    for kind, draw in FIGURES.items():
        figure = draw(view)
        if figure is not None:
            figures[f"{key}-{kind}"] = _without_title(figure)
            sections.append(_figure(f"{key}-{kind}", kind, figure))
    result = "".join(
        _table(part) if isinstance(part, Table) else f"<p>{_escaped(str(part))}</p>\n"
        for part in describe_result(view, Path(name))
    )
    request = f"<p>{_escaped(describe_settings(view))}</p>" if view.settings else ""
    settings = _escaped(json.dumps(view.settings, indent=1, ensure_ascii=False))
    return (
        f'<article id="{key}">\n<h1>{_escaped(name)}</h1>\n{request}\n'
        f"<section><h2>Result</h2>\n{result}</section>\n{''.join(sections)}"
        f"<section><h2>Decisions</h2>\n{_decisions(view, state)}</section>\n"
        f"<section><h2>{'Runs' if view.tasks else 'Forks'}</h2>\n{_table(fork_table(view, view.forks))}</section>\n"
        f"<section><h2>Settings</h2>\n<details><summary>as in the journal</summary><pre>{settings}</pre></details>"
        "</section>\n</article>\n"
    )


def _without_title(figure: Figure) -> Figure:
    """A figure without its title, since the page puts a heading above it."""
    return figure.update_layout(title_text="", margin_t=max(figure.layout.margin.t - TITLE_HEIGHT, MIN_TOP_MARGIN))


def _figure(key: str, kind: str, figure: Figure) -> str:
    caption = CAPTIONS[kind]
    note = f" In this figure {figure.layout.meta}." if figure.layout.meta else ""
    return (
        f'<section><h2>{caption.heading}</h2>\n<figure><div class="figure" id="{key}" role="img" '
        f'aria-label="{caption.heading}" style="height:{figure.layout.height}px"></div>'
        f"<figcaption>{caption.text}{note}</figcaption></figure></section>\n"
    )


def _decisions(view: StudyView, state: StudyState) -> str:
    """A block for each decision, with a line for each sentence about it."""
    blocks = list[str]()
    for decision in decision_texts(state):
        lines = "".join(f"<li>{_escaped(sentence)}</li>" for sentence in decision.sentences)
        step = "" if view.tasks else f", step {decision.step:,}"
        duration = f"{1000 * decision.seconds:.0f} ms"
        blocks.append(
            f"<li><strong>decision {decision.round}{step}</strong> <small>{duration}</small><ul>{lines}</ul></li>\n"
        )
    return f'<ol class="decisions">\n{"".join(blocks)}</ol>\n'


def _table(table: Table) -> str:
    """A table made for terminals, as HTML."""
    columns = [(_plain_text(column.header), [_plain_text(cell) for cell in column.cells]) for column in table.columns]
    head = "".join(f'<th scope="col">{_escaped(header)}</th>' for header, _ in columns)
    classes = ["number" if column.justify == "right" else "words" for column in table.columns]
    body = ""
    for row in zip(*(cells for _, cells in columns), strict=True):
        cells = "".join(f"<td class={kind}>{_escaped(cell)}</td>" for kind, cell in zip(classes, row, strict=True))
        body += f"<tr>{cells}</tr>\n"
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n'


def _plain_text(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _json_element(key: str, text: str) -> str:
    """Data for the script of the page, in which no character can end the element."""
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e")
    return f'<script type="application/json" id="{key}">{safe}</script>\n'


def _inline_script(script: str) -> str:
    """A script that can stand between script tags."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
