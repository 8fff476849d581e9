"""What an error from a node means."""

import pytest
from ray.exceptions import NodeDiedError, ObjectLostError, OutOfMemoryError, RayTaskError

from paceline.errors import TrainingError
from paceline.runner.ray.errors import describe_error, failure_of_lost_workers, lost_its_input, paceline_error

LOST = ObjectLostError("ab" * 28, None, "")


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
