import errno
import gc
import weakref

import pytest
import torch

from paceline.runner.user_errors import failure_of


def caught(raise_error) -> Exception:
    try:
        raise_error()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def bad_batch() -> None:
    raise ValueError("bad batch")


def test_the_line_of_the_users_code_is_named_not_that_of_a_library() -> None:
    failure = failure_of(caught(lambda: torch.zeros(2, 3) @ torch.zeros(2, 3)))
    assert failure.kind == "raised"
    assert failure.message.startswith("RuntimeError: ")
    line = caught.__code__.co_firstlineno
    assert failure.place.startswith("test_user_errors.py, line ")
    assert int(failure.place.rpartition(" ")[2]) > line


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("bad"), "raised"),
        (MemoryError(), "out of memory"),
        (torch.OutOfMemoryError("CUDA out of memory"), "out of memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "no space"),
        (OSError(errno.ENOENT, "No such file"), "raised"),
    ],
)
def test_errors_have_a_kind(error: Exception, kind: str) -> None:
    failure = failure_of(error)
    assert failure.kind == kind
    assert failure.error is error
    assert failure.place == ""


def test_a_kept_exception_does_not_keep_the_users_tensors() -> None:
    references = []

    def train() -> None:
        batch = torch.zeros(10)
        references.append(weakref.ref(batch))
        bad_batch()

    failure = failure_of(caught(train))
    gc.collect()
    assert failure.error is not None
    assert references[0]() is None
