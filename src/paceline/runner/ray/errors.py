"""The meaning of errors that come back from a node. Ray wraps them all in errors of its own."""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from ray import cloudpickle
from ray.exceptions import ObjectLostError, OutOfMemoryError, RayError, RayTaskError

from paceline.errors import PacelineError, TrainingError
from paceline.runner.user_errors import users_traceback
from paceline.study import Failure, Report

NODE_TRACEBACK = "node_traceback"  # the attribute in which a TrainingError brings the traceback of its cause


class NodeError(Exception):
    """The traceback of an exception on a node, as the cause of the same exception here."""

    def __str__(self) -> str:
        return f"on a node:\n\n{self.args[0]}"


class PackedError(Exception):
    """A user's exception on its way from a node, as bytes: it may not be readable where the study runs.

    Its arguments are these bytes (none if it cannot be pickled), its message and its traceback.
    """

    def unpack(self) -> Exception:
        """The exception, or an error of its message; its traceback on the node is its cause."""
        packed, message, text = self.args
        try:
            error = cloudpickle.loads(packed)
        except Exception:
            error = None
        if not isinstance(error, Exception):
            error = TrainingError(message)
        error.__cause__ = NodeError(text)
        return error


def pack_error(error: BaseException) -> PackedError:
    """A user's exception, packed with its message and its traceback."""
    packed = b""
    with suppress(Exception):  # it may hold what cannot be pickled
        packed = bytes(cloudpickle.dumps(error))  # pyright: ignore
    return PackedError(packed, f"{type(error).__name__}: {error}".removesuffix(": "), users_traceback(error))


@contextmanager
def packed_errors() -> Generator[None]:
    """Send a user's exception inside the block packed. An error of paceline itself travels as it is."""
    try:
        yield
    except TrainingError:
        raise
    except Exception as error:
        raise pack_error(error) from None


def pack_exception(report: Report) -> Report:
    """The report with its exception packed. One that cannot be is left out; its message and traceback travel."""
    if report.failure is None or report.failure.error is None:
        return report
    error = pack_error(report.failure.error)
    return replace(report, failure=replace(report.failure, error=error if error.args[0] else None))


def unpack_exception(report: Report) -> Report:
    """The report with the exception that `pack_exception` packed, or with an error of its message."""
    failure = report.failure
    if failure is None or failure.kind == "lost" or not failure.traceback:
        return report
    error = failure.error
    error = error if isinstance(error, PackedError) else PackedError(b"", failure.message, failure.traceback)
    return replace(report, failure=replace(failure, error=error.unpack()))


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


def error_to_raise(error: RayError) -> Exception:
    """The exception to raise for an error from a node: the user's own, one of paceline itself, or the error as it is.

    Raise it `from` its own cause, which is its traceback on the node.
    """
    cause = getattr(error, "cause", None)
    return cause.unpack() if isinstance(cause, PackedError) else paceline_error(error) or error


def paceline_error(error: Any) -> PacelineError | None:
    """The error that paceline itself raised on a node, if that is the cause."""
    cause = getattr(error, "cause", None)
    if not isinstance(cause, PacelineError):
        return None
    text = getattr(cause, NODE_TRACEBACK, "")
    cause.__cause__ = NodeError(text) if text else None
    return cause
