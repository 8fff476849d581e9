"""What goes wrong where the events of a study, each of them sound, do not belong together."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from paceline.errors import JournalError, PacelineError

CONTRADICTIONS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
UNREADABLE = (PacelineError, OSError, *CONTRADICTIONS)


@contextmanager
def reading(study: "str | Path" = "the study") -> Generator[None]:
    """Turn what a contradiction in a study raises into a `JournalError`, whose cause it is."""
    try:
        yield
    except PacelineError:
        raise
    except CONTRADICTIONS as error:
        raise JournalError(
            f"{study} cannot be shown, because its events contradict each other ({type(error).__name__}: {error}): "
            "the journal was edited or damaged, restore it"
        ) from error
