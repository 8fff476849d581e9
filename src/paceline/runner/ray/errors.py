"""What an error that comes back from a node means: ray wraps all of them in its own."""

import re
from typing import Any

from ray.exceptions import ObjectLostError, RayError, RayTaskError

from paceline.errors import PacelineError


def in_words(error: Exception) -> str:
    """Why a worker is gone, in a line: an exception's, or what ray found out."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    died = [line for line in lines if re.search("died|dead|killed|memory|exit", line)]
    return (raised[-1:] or died[-1:] or lines or [type(error).__name__])[0].split(" Some common causes")[0]


def argument_lost(error: Exception) -> bool:
    """Whether a call failed because the state it was given went with a worker or a node."""
    cause: Any = getattr(error, "cause", error) if isinstance(error, RayTaskError) else error
    return isinstance(cause, ObjectLostError) or (cause is not error and isinstance(cause, RayError))


def own_error(error: Any) -> PacelineError | None:
    """What paceline itself said on a node, where that is what went wrong."""
    cause = getattr(error, "cause", None)
    if not isinstance(cause, PacelineError):
        return None
    cause.__cause__ = None
    return cause
