"""Checks for a training, strategy or runner of your own.

Each is one line in a test:

    from paceline.testing import check_training

    def test_my_training() -> None:
        check_training(MyTraining, rate=0.01)

A check raises a `ConformanceError`, which is an `AssertionError`. It says what is wrong, what that would do to a study,
and what to change. docs/testing.md lists what is checked.
"""

from paceline.errors import ConformanceError
from paceline.testing.runner_checks import check_runner
from paceline.testing.strategy_checks import check_strategy
from paceline.testing.training_checks import check_training

__all__ = ["ConformanceError", "check_runner", "check_strategy", "check_training"]
