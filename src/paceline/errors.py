"""The errors that Paceline raises. Each is a type that a caller can catch.

A message says what was expected, what was given and what to do. A wrong argument is an `InputError`. That is also a
`ValueError`, so code that does not import Paceline can catch it.
"""

from paceline.safe_text import safe_text


class PacelineError(Exception):
    """The base of all errors that Paceline raises on purpose."""

    def __str__(self) -> str:
        """The message. It may quote a stranger's journal, so no character of it can steer a terminal."""
        return safe_text(super().__str__(), keep="\n")


class InputError(PacelineError, ValueError):
    """An argument cannot be used. The message says what to pass instead."""


class OtherSettingsError(InputError):
    """A study was begun with other settings. The message lists the differences."""


class FitError(PacelineError, RuntimeError):
    """A model could not be fitted, although the traces are well formed."""


class JournalError(PacelineError, RuntimeError):
    """A study folder cannot be read or written: it was damaged, edited, or written by a newer version."""


class StudyLockedError(PacelineError, RuntimeError):
    """Another process is writing the study."""


class TrainingError(PacelineError, RuntimeError):
    """A training does not do what a training must. The message says what was expected."""


class ConformanceError(PacelineError, AssertionError):
    """A user's class does not do what its interface promises. The message says what to change."""
