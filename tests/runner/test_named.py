from functools import partial

import pytest

from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import Local, make_runner, with_settings

MAKE = partial(QuadraticTraining, Quadratic(dims=3))


def test_a_runner_is_made_by_its_name_or_by_a_callable() -> None:
    assert isinstance(make_runner("local", MAKE), Local)
    assert isinstance(make_runner(Local, MAKE), Local)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_runner("cloud", MAKE), "runner must be one of local, streams, ray, got 'cloud'"),
        (lambda: make_runner(lambda training: 17, MAKE), "runner must make a Runner, got 17"),  # type: ignore[arg-type, return-value]
        (lambda: with_settings("local", gpus=1.0), "gpus is a setting of the runner ray, got it with local"),
    ],
)
def test_what_is_no_runner_is_refused(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_settings_that_are_not_given_leave_the_name() -> None:
    assert with_settings("ray", cpus=None, gpus=None) == "ray"
    assert with_settings("streams", forks=3).keywords == {"forks": 3}  # type: ignore[union-attr]
