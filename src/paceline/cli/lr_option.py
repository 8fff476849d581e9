"""The option `--lr LOW HIGH`. It is checked before the parser runs, to name the two rates that it needs."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from typer.core import TyperCommand

from paceline.cli.application import report_errors
from paceline.errors import InputError


class CommandWithLr(TyperCommand):
    """A command with `--lr`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Check the bounds, then parse."""
        with report_errors():
            _check_bounds(args)
        return super().parse_args(ctx, args)


def _check_bounds(args: Sequence[str]) -> None:
    for at, arg in enumerate(args):
        name, equals, first = arg.partition("=")
        if name != "--lr":
            continue
        after = [first, *args[at + 1 :]] if equals else args[at + 1 :]
        given = list(takewhile(lambda word: not word.startswith("--"), after[:2]))
        if len(given) < 2 or not all(map(_is_number, given)):
            got = " ".join(given) or "nothing"
            raise InputError(
                f"expected two rates after --lr, the lowest and the highest, got {got}: as in --lr 1e-4 1e-1"
            )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
