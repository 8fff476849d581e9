"""An exception of a user's training as a failure: its kind, its message, and the line of the user's code behind it.

The line is what a person needs to fix it, and the traceback is lost once the failure is in the journal. Only the file's
name is kept, since a journal may be read on another machine.
"""

import errno
import sysconfig
import traceback
from pathlib import Path

import torch

from paceline.study import Failure

_NOT_THE_USERS = (
    str(Path(__file__).parents[1]),
    *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")},
)
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception stands for.

    It keeps the exception, so that a study in which every fork fails can raise it again. The variables of its frames
    are cleared: they may hold a model, or all of a GPU's memory.
    """
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    frames = traceback.extract_tb(error.__traceback__)
    traceback.clear_frames(error.__traceback__)
    users = [frame for frame in frames if not frame.filename.startswith((*_NOT_THE_USERS, "<"))]
    place = f"{Path(users[-1].filename).name}, line {users[-1].lineno}" if users else ""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return Failure("out of memory", message, place, error=error)
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return Failure("no space", message, place, error=error)
    return Failure("raised", message, place, error=error)
