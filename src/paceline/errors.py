"""What can go wrong, as types a caller can catch.

Every message says what was expected, what was given and what to do. A wrong argument is an `InputError`, which is also
a `ValueError`, so that code which has never heard of paceline still catches it.
"""


class PacelineError(Exception):
    """Any error that paceline raises on purpose."""


class InputError(PacelineError, ValueError):
    """An argument that cannot be used: the message says what to pass instead."""


class OtherSettingsError(InputError):
    """A study that was begun with other settings: the message says which."""


class FitError(PacelineError, RuntimeError):
    """A model that could not be fitted to otherwise well-formed traces."""


class JournalError(PacelineError, RuntimeError):
    """A study folder that cannot be read: damaged, edited, or written by a newer version."""


class StudyLockedError(PacelineError, RuntimeError):
    """A study that another process is writing."""


class TrainingError(PacelineError, RuntimeError):
    """A training that does not do what a training must: the message says what was expected of it."""


class ConformanceError(PacelineError, AssertionError):
    """A class of the user that does not do what its interface promises: the message says what to change."""
