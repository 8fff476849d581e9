"""`paceline serve`: studies in the browser, while they run."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.application import app, print_line, report_errors
from paceline.errors import InputError


@app.command()
def serve(
    studies: Annotated[
        list[Path], typer.Argument(metavar="STUDY...", help="Study folders, or folders with studies below them.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own needs a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8787,
    token: Annotated[
        str | None,
        typer.Option(envvar="PACELINE_TOKEN", help="Token for the page.", show_default="generated if needed"),
    ] = None,
) -> None:
    """Show studies in the browser, live while they run. Nothing is sent elsewhere, and studies are only read."""
    with report_errors():
        missing = [name for name in ("plotly", "starlette", "uvicorn") if find_spec(name) is None]
        if missing:
            raise InputError(f"serve needs {', '.join(missing)}, not installed here: pip install 'paceline[web]'")
        from paceline.views import serve_studies

        serve_studies(studies, host=host, port=port, token=token, write=print_line)
        raise KeyboardInterrupt  # the server ends at Ctrl-C only, whether or not it passes that on
