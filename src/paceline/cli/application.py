"""The application that commands are added to. Errors, warnings and notes are printed as one line each."""

import json
import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from paceline.errors import PacelineError, TrainingError
from paceline.safe_text import safe_text

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> bool:
    if wanted:
        from paceline import __version__

        typer.echo(f"paceline {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tune the learning rate of a training on the fly, or the schedules of a family of tasks."""


def print_line(line: str) -> None:
    """Print to stderr, so that it does not mix with the output."""
    typer.echo(safe_text(line, keep="\n"), err=True)


def print_json(data: "dict[str, Any]") -> None:
    """Print one object to stdout, in characters that every terminal shows as they are."""
    typer.echo(json.dumps(data).replace("\x7f", "\\u007f"))


class _SafeFormatter(logging.Formatter):
    """Log lines that may quote a stranger's study."""

    def format(self, record: logging.LogRecord) -> str:
        return safe_text(super().format(record), keep="\n")


@contextmanager
def report_errors() -> Generator[None]:
    """Print errors, warnings and notes as one line each."""

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        print_line(f"note: {message}")

    handler, logger = logging.StreamHandler(), logging.getLogger("paceline")  # to stderr, as the notes
    handler.setFormatter(_SafeFormatter("note: %(message)s"))
    with warnings.catch_warnings():
        warnings.showwarning = note
        logger.addHandler(handler)
        level = logger.level
        logger.setLevel(logging.INFO)
        try:
            yield
        except KeyboardInterrupt:
            print_line("stopped")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            raise
        except Exception as error:
            if not isinstance(error, PacelineError) and getattr(error, "__notes__", ()):  # of the user's training
                from paceline.runner import users_traceback  # imports torch

                print_line(users_traceback(error).rstrip())
            elif isinstance(error, PacelineError | OSError):
                print_line(_in_one_line(error))
            else:
                raise
            raise typer.Exit(2) from None
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)


def _in_one_line(error: PacelineError | OSError) -> str:
    """The error, and where in the user's code it comes from."""
    from paceline.factory import error_place

    cause = error.__cause__ if isinstance(error, TrainingError) else None
    place = error_place(cause) if cause is not None else ""
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    return f"error: {error}{place or notes}"
