"""`--lr LOW HIGH`."""

import pytest

from tests.cli.command_line import call, refused


@pytest.mark.parametrize("lr", ["--lr 1e-4", "--lr=1e-4", "--lr 1e-4,1e-1", "--lr 1e-4 high", "--lr"])
@pytest.mark.parametrize("command", ["tune", "tasks", "plan"])
def test_bounds_that_are_not_two_rates_are_refused_in_words(command: str, lr: str) -> None:
    got = lr[5:] or "nothing"
    message = f"expected two rates after --lr, the lowest and the highest, got {got}: as in --lr 1e-4 1e-1"
    refused(call(command, "tests.cli.command_line:quadratic", *lr.split(), "--steps", "200"), message)
    refused(call(command, "tests.cli.command_line:quadratic", "--steps", "200", *lr.split()), message)
