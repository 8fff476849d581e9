"""Warnings that name the user's line, however deep in the library they are raised."""

import inspect
import warnings


def warn_user(message: str) -> None:
    """Warn at the line outside of this package that led here."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith("paceline."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
