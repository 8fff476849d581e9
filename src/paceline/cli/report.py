"""`paceline report`: studies as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.app import app, readable, say
from paceline.cli.reading import happened


@app.command()
def report(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY...", help="Folders of studies.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path("report.html"),
) -> None:
    """Write a report of one study or several: settings, results, figures and every decision in words, in one file.

    It needs no network and nothing beside it, and studies that are still running can be reported too.
    """
    with readable():
        from paceline.views import html_report

        page = html_report({str(study): happened(study) for study in studies})
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page, encoding="utf-8")
        say(f"wrote {output}: open it in a browser")
