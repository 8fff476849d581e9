"""Options that several commands share."""

from paceline.cli.options import RunnerName
from paceline.runner import RUNNERS


def test_every_runner_can_be_named() -> None:
    assert [where.value for where in RunnerName] == list(RUNNERS)
