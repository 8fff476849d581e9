"""An error of a user's training in one line: its type, what it says, and the line of their own code that it comes from.

The line is what a person needs to mend it, and the traceback is gone once the failure is in the journal. Only the
file's name is kept, since a journal may be read on another machine.
"""

import sysconfig
import traceback
from pathlib import Path

_NOT_THEIRS = (str(Path(__file__).parents[1]), *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


def in_words(error: BaseException) -> str:
    """Say "ValueError: bad batch (train.py, line 12)"; without the place where none of the lines is the user's."""
    said = f"{type(error).__name__}: {error}".removesuffix(": ")
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if not f.filename.startswith((*_NOT_THEIRS, "<"))]
    return f"{said} ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else said
