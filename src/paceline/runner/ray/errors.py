"""The meaning of errors that come back from a node. Ray wraps them all in errors of its own."""

import re
from typing import Any

from ray.exceptions import ObjectLostError, OutOfMemoryError, RayError, RayTaskError

from paceline.errors import PacelineError
from paceline.study import Failure


def describe_error(error: Exception) -> str:
    """Why a worker is gone, in one line: the exception that it raised, or what ray says about its death."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    died = [line for line in lines if re.search("died|dead|killed|memory|exit", line)]
    return (raised[-1:] or died[-1:] or lines or [type(error).__name__])[0].split(" Some common causes")[0]


def failure_of_lost_workers(error: Exception, count: int) -> Failure:
    """The failure of an interval at which this many workers died, the last one with this error."""
    kind = "out of memory" if isinstance(error, OutOfMemoryError) else "lost"
    return Failure(kind, f"{count} workers died during this interval: {describe_error(error)}")


def lost_its_input(error: Exception) -> bool:
    """Whether a call failed because the state it was given was lost with a worker or a node."""
    cause: Any = getattr(error, "cause", error) if isinstance(error, RayTaskError) else error
    return isinstance(cause, ObjectLostError) or (cause is not error and isinstance(cause, RayError))


def paceline_error(error: Any) -> PacelineError | None:
    """The error that paceline itself raised on a node, if that is the cause."""
    cause = getattr(error, "cause", None)
    if not isinstance(cause, PacelineError):
        return None
    cause.__cause__ = None
    return cause
