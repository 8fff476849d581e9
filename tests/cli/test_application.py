"""The application itself."""

import paceline
from tests.cli.command_line import call


def test_the_version_can_be_asked_for() -> None:
    assert call("--version").output == f"paceline {paceline.__version__}\n"
