import errno
import gc
import math
import weakref

import numpy as np
import pytest
import torch

from paceline.runner.user_errors import (
    failure_of,
    is_mistake,
    is_regardless_of_rate,
    is_transient,
    users_traceback,
    without_variables,
)
from paceline.study import Failure


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

    failure = without_variables(failure_of(caught(train)))
    gc.collect()
    assert failure.error is not None
    assert references[0]() is None


def wrong_view() -> None:
    torch.zeros(6).view(4, 2)


def missing_key() -> None:
    {"image": 1}["label"]


def asserts_shape() -> None:
    assert torch.zeros(2).shape == (3,)


def empty_loader() -> None:
    sum([]) / len([])


def masks_another_shape() -> None:
    torch.zeros(2, 3).masked_fill(torch.zeros(4, 4).bool(), float("-inf"))


def asserts_finite() -> None:
    assert math.isfinite(float("nan"))


def stops_without_a_message() -> None:
    loss = float("nan")
    raise RuntimeError("bad loss") if not math.isfinite(loss) else ValueError


def stops_at_nan() -> None:
    raise RuntimeError("loss is NaN, stopping training")


def overflows() -> None:
    math.exp(1e4)


def singular() -> None:
    np.linalg.inv(np.zeros((2, 2)))


@pytest.mark.parametrize("raises", [wrong_view, missing_key, asserts_shape, empty_loader, masks_another_shape])
def test_mistakes_are_told_from_what_a_rate_does(raises) -> None:
    assert is_mistake(failure_of(caught(raises)))


@pytest.mark.parametrize("raises", [asserts_finite, stops_without_a_message, stops_at_nan, overflows, singular])
def test_an_exception_about_numbers_is_no_mistake(raises) -> None:
    assert not is_mistake(failure_of(caught(raises)))


def test_failures_without_an_exception_are_no_mistakes() -> None:
    assert not is_mistake(None)
    assert not is_mistake(Failure("diverged", step=3))
    assert not is_mistake(failure_of(MemoryError()))


def test_a_traceback_begins_at_the_users_first_line() -> None:
    text = users_traceback(caught(wrong_view))
    assert text.startswith("Traceback (most recent call last):\n")
    assert "torch.zeros(6).view(4, 2)" in text
    failure = failure_of(caught(wrong_view))
    assert failure.error is not None
    assert failure.traceback == users_traceback(failure.error)
    assert Failure.from_json(failure.to_json()).traceback == failure.traceback


@pytest.mark.parametrize(
    ("error", "transient"),
    [
        (MemoryError(), True),
        (torch.cuda.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("DataLoader worker (pid(s) 71) exited unexpectedly"), True),
        (RuntimeError("DataLoader worker (pid 71) is killed by signal: Killed. "), True),
        (ConnectionResetError(), True),
        (TimeoutError("read timed out"), True),
        (OSError(errno.EIO, "Input/output error"), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (FileNotFoundError(errno.ENOENT, "No such file"), False),
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (FloatingPointError("overflow"), False),
        (RuntimeError("probability tensor contains nan"), False),
        (torch.linalg.LinAlgError("not positive definite"), False),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("bad batch"), False),
        (KeyError("label"), False),
    ],
)
def test_only_what_may_pass_by_itself_is_transient(error: Exception, transient: bool) -> None:
    assert is_transient(failure_of(error)) is transient


def test_values_and_lost_workers_are_not_tried_again() -> None:
    assert not is_transient(None)
    assert not is_transient(Failure("not finite", step=3))
    assert not is_transient(Failure("lost", "3 workers died during this interval"))


def test_a_failure_may_have_nothing_to_do_with_the_rate() -> None:
    for error in (MemoryError(), OSError(errno.ENOSPC, "No space left on device"), KeyError("label")):
        assert is_regardless_of_rate(failure_of(error))
    for failure in (None, Failure("not finite", step=3), failure_of(FloatingPointError("overflow"))):
        assert not is_regardless_of_rate(failure)
