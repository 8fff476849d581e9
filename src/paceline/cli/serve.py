"""`paceline serve`: studies in the browser, as they run."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli.app import app, readable, say
from paceline.errors import InputError


@app.command()
def serve(
    studies: Annotated[
        list[Path], typer.Argument(metavar="STUDY...", help="Study folders, or folders with studies below them.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine's own asks for a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8787,
    token: Annotated[
        str | None,
        typer.Option(envvar="PACELINE_TOKEN", help="What to ask for.", show_default="made where it is needed"),
    ] = None,
) -> None:
    """Show studies in the browser, live while they run. Nothing is sent elsewhere, and no study is ever written to."""
    with readable():
        missing = [name for name in ("plotly", "starlette", "uvicorn") if find_spec(name) is None]
        if missing:
            raise InputError(f"serve needs {', '.join(missing)}, not installed here: pip install 'paceline[web]'")
        from paceline.views import serve_studies

        serve_studies(studies, host=host, port=port, token=token, say=say)
        raise KeyboardInterrupt  # it only ends when it is told to, whether or not the server passes that on
