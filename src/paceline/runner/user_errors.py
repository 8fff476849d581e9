"""An exception of a user's training as a failure, and what to do about it.

It may be a mistake in the code, which no rate would mend, or transient: the same interval may succeed if it is run
again. Others are failures of a fork.

The line and the traceback are what a person needs to fix it, so the journal keeps them. Of the line's file only the
name is kept, since a journal may be read on another machine.
"""

import errno
import re
import sysconfig
import traceback
from dataclasses import replace
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

import numpy as np
import torch

from paceline.study import Failure

_NOT_THE_USERS = (
    str(Path(__file__).parents[1]),
    *{sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")},
    "<",
)
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
# errors of input and output that come again: of a name, a type or a right, and of a full disk
_LASTING = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
# what torch says, in a plain RuntimeError, if a process of its loader has ended or memory has run out
_OF_A_MOMENT = re.compile(
    r"DataLoader worker .*(exited unexpectedly|is killed by signal)|out of memory|can't allocate memory", re.DOTALL
)
_OF_THE_MACHINE = ("out of memory", "lost", "no space")
LONGEST_TRACEBACK = 10_000  # characters

# An exception is about numbers, which another rate may mend, if it is of such a type, ...
_OF_NUMBERS = (FloatingPointError, OverflowError, np.linalg.LinAlgError, torch.linalg.LinAlgError)  # pyright: ignore
# ... or if its message, or the line of an assertion or a `raise`, has one of these words. Other lines may have them for
# other reasons: a mask is filled with -inf.
_WORDS_OF_NUMBERS = re.compile(
    r"\b(nans?|infs?|infinite|infinity|(non-?|not )?finite|overflow\w*|diverg\w*|explod\w*|singular|ill-conditioned)\b"
    r"|isnan|isinf|isfinite|math (domain|range) error|out of memory|can't allocate memory",
    re.IGNORECASE,
)


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception stands for.

    It keeps the exception, which can so be raised again.
    """
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    users = _users_frames(error)
    place = f"{Path(users[-1].filename).name}, line {users[-1].lineno}" if users else ""
    failure = Failure("raised", message, place, error=error, traceback=users_traceback(error))
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return without_variables(replace(failure, kind="out of memory"))
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return replace(failure, kind="no space")
    return failure


def is_transient(failure: Failure | None) -> bool:
    """Whether the same interval may succeed if it is run again.

    That is so if memory ran out, if a process that loads data ended, or if reading or writing failed for a moment. A
    worker of Ray that ended has no exception here: Ray has given its interval to others already.
    """
    if failure is None or failure.error is None or failure.kind == "no space":
        return False
    if failure.kind == "out of memory":
        return True
    if isinstance(failure.error, OSError):
        return not isinstance(failure.error, _LASTING)
    return isinstance(failure.error, RuntimeError) and bool(_OF_A_MOMENT.search(str(failure.error)))


def is_regardless_of_rate(failure: Failure | None) -> bool:
    """Whether a failure has nothing to do with the rate: a mistake in the code, or too little memory or disk."""
    return failure is not None and (failure.kind in _OF_THE_MACHINE or is_mistake(failure))


def is_mistake(failure: Failure | None) -> bool:
    """Whether a failure is an exception that is neither about numbers nor about memory: no rate would mend it."""
    if failure is None or failure.kind != "raised" or failure.error is None:
        return False
    if isinstance(failure.error, _OF_NUMBERS):
        return False
    return not _WORDS_OF_NUMBERS.search(f"{failure.message} {_line_of_check(failure.error)}")


def _line_of_check(error: BaseException) -> str:
    """The user's line that raised an exception, if it says what is checked: an assertion or a `raise`."""
    users = _users_frames(error)
    line = (users[-1].line or "") if users else ""
    return line if isinstance(error, AssertionError) or re.search(r"\braise\b", line) else ""


def without_variables(failure: Failure) -> Failure:
    """The failure, the variables of its exception's frames cleared: they may hold a model, or all of a GPU's memory."""
    if failure.error is not None:
        traceback.clear_frames(failure.error.__traceback__)
    return failure


def users_traceback(error: BaseException) -> str:
    """The traceback from the user's first line on; the whole one if no line is the user's."""
    described = TracebackException.from_exception(error)
    first = next((i for i, frame in enumerate(described.stack) if _is_users(frame)), 0)
    described.stack = StackSummary.from_list(described.stack[first:])
    return "".join(described.format())[-LONGEST_TRACEBACK:]


def _users_frames(error: BaseException) -> list[FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame)]


def _is_users(frame: FrameSummary) -> bool:
    return is_users_file(frame.filename)


def is_users_file(name: str) -> bool:
    """Whether code in a file of this name is the user's, and not that of a library."""
    return not name.startswith(_NOT_THE_USERS)
