import inspect

import pytest

from paceline import errors
from paceline.errors import ConformanceError, InputError, PacelineError

CLASSES = [member for _, member in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("error", CLASSES)
def test_all_errors_can_be_caught_as_one_and_are_documented(error: type[Exception]) -> None:
    assert issubclass(error, PacelineError)
    assert error.__doc__


def test_wrong_arguments_are_value_errors_and_broken_classes_assertion_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(ConformanceError, AssertionError)
