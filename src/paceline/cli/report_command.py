"""`paceline report`: studies as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.application import app, print_line, report_errors
from paceline.cli.study_loading import load_events


@app.command()
def report(
    studies: Annotated[list[Path], typer.Argument(metavar="STUDY...", help="Folders of studies.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.")] = Path("report.html"),
) -> None:
    """Write a report of one study or several: settings, results, figures and reasons of all decisions, in one file.

    The file needs no network and no other files. Studies may still be running.
    """
    with report_errors():
        from paceline.study import reading
        from paceline.views import html_report

        events = {str(study): load_events(study) for study in studies}
        with reading(", ".join(events)):
            page = html_report(events)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(page, encoding="utf-8")
        print_line(f"wrote {output}: open it in a browser")
