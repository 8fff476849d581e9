"""What an error from a node means."""

import pytest
from ray import cloudpickle
from ray.exceptions import NodeDiedError, ObjectLostError, OutOfMemoryError, RayTaskError

from paceline.errors import TrainingError
from paceline.runner.ray.errors import (
    NODE_TRACEBACK,
    NodeError,
    PackedError,
    describe_error,
    error_to_raise,
    failure_of_lost_workers,
    lost_its_input,
    paceline_error,
    pack_exception,
    packed_errors,
    unpack_exception,
)
from paceline.runner.user_errors import failure_of
from paceline.study import Report

LOST = ObjectLostError("ab" * 28, None, "")


class UnreadableError(Exception):
    """An exception that cannot be read where the study runs, as one of a module that is only on the node."""

    def __reduce__(self):
        return _raise, ()


def _raise() -> None:
    raise ImportError("no module named 'theirs'")


def report_of(error: Exception) -> Report:
    """The report on an interval that ended with this exception, as a node would send it."""
    try:
        raise error
    except Exception as caught:
        return Report(0, 0, 0, (), {}, failure_of(caught))


def task_error(cause: Exception) -> RayTaskError:
    return RayTaskError("run", f"Traceback ...\n{type(cause).__name__}: {cause}", cause)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (task_error(ValueError("a bad batch")), "ValueError: a bad batch"),
        (
            NodeDiedError("The actor died unexpectedly before finishing this task. Some common causes include: (1)"),
            "The actor died unexpectedly before finishing this task.",
        ),
        (RuntimeError("first\nthe process was killed by SIGKILL"), "the process was killed by SIGKILL"),
        (RuntimeError("first\nsecond"), "first"),
        (StopIteration(), "StopIteration"),
    ],
)
def test_the_line_that_says_why(error: Exception, line: str) -> None:
    assert describe_error(error) == line


def test_lost_workers_are_a_failure_of_their_kind() -> None:
    killed = failure_of_lost_workers(OutOfMemoryError("Task was killed due to the node running low on memory."), 3)
    assert (killed.kind, killed.error) == ("out of memory", None)
    assert killed.message.startswith("3 workers died during this interval: Task was killed due to the node running low")
    assert failure_of_lost_workers(NodeDiedError("the node died"), 3).kind == "lost"


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (LOST, True),
        (task_error(LOST), True),
        (task_error(NodeDiedError("owner died")), True),
        (NodeDiedError("the worker itself"), False),
        (task_error(ValueError("of the user")), False),
        (StopIteration(), False),
    ],
)
def test_an_input_is_lost_if_the_object_or_its_owner_is(error: Exception, is_lost: bool) -> None:
    assert lost_its_input(error) == is_lost


def test_an_error_of_paceline_itself_is_unwrapped() -> None:
    own = TrainingError("batches is empty")
    own.__cause__ = ValueError()
    unwrapped = paceline_error(task_error(own))
    assert unwrapped is own
    assert unwrapped.__cause__ is None
    assert paceline_error(task_error(ValueError("of the user"))) is None
    assert paceline_error(LOST) is None


def test_the_traceback_on_the_node_is_the_cause_of_an_error_of_paceline() -> None:
    own = TrainingError("the training factory raised KeyError: 'label'")
    setattr(own, NODE_TRACEBACK, "Traceback ...\nKeyError: 'label'")
    unwrapped = paceline_error(task_error(own))
    assert unwrapped is not None
    assert isinstance(unwrapped.__cause__, NodeError)
    assert str(unwrapped.__cause__) == "on a node:\n\nTraceback ...\nKeyError: 'label'"


def test_an_exception_travels_with_its_traceback() -> None:
    sent = pack_exception(report_of(KeyError("label")))
    failure = unpack_exception(sent).failure
    assert failure is not None
    assert isinstance(failure.error, KeyError)
    assert "raise error" in str(failure.error.__cause__)
    assert failure.place.startswith("test_errors.py, line ")


@pytest.mark.parametrize("error", [UnreadableError("their fault"), ValueError(open)], ids=["unreadable", "plain"])
def test_an_exception_that_does_not_travel_leaves_its_message(error: Exception) -> None:
    failure = unpack_exception(pack_exception(report_of(error))).failure
    assert failure is not None
    assert isinstance(failure.error, TrainingError if isinstance(error, UnreadableError) else ValueError)
    assert str(error) in str(failure.error)


@pytest.mark.parametrize("error", [KeyError("label"), UnreadableError("their fault")], ids=["own", "unreadable"])
def test_an_exception_of_a_factory_is_raised_here_with_its_traceback_there(error: Exception) -> None:
    with pytest.raises(PackedError) as sent, packed_errors():
        raise error
    raised = error_to_raise(task_error(cloudpickle.loads(cloudpickle.dumps(sent.value))))
    assert type(raised) is (TrainingError if isinstance(error, UnreadableError) else KeyError)
    assert str(error) in str(raised)
    assert "raise error" in str(raised.__cause__)


def test_other_errors_from_a_node_are_raised_as_they_are() -> None:
    own = TrainingError("the training factory must return a Training")
    with pytest.raises(TrainingError, match="must return a Training"), packed_errors():
        raise own
    assert error_to_raise(task_error(own)) is own
    others = task_error(ValueError("of ray"))
    assert error_to_raise(others) is others


def test_reports_without_an_exception_are_left_alone() -> None:
    report = Report(0, 0, 10, (10,), {"raw": (1.0,)})
    assert unpack_exception(pack_exception(report)) == report
