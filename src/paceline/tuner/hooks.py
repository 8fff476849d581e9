"""What is called as a study goes: the hooks of the user, and the messages that a program shows by default."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from paceline.study import Event, read_journal
from paceline.training import ExpectedTime


class Hooks(NamedTuple):
    """What is called as a study goes.

    Args:
        on_event: with every new event.
        on_step: with (fork, step).
        on_expected: with how long the study is expected to take, before the first interval.
    """

    on_event: "Callable[[Event], None] | None"
    on_step: "Callable[[int, int], None] | None"
    on_expected: "Callable[[ExpectedTime], None] | None" = None


@contextmanager
def hooks_of(
    study: "str | Path | None",
    on_event: "Callable[[Event], None] | None",
    on_step: "Callable[[int, int], None] | None",
    *,
    quiet: bool,
) -> Generator[Hooks]:
    """The user's hooks, and messages about the study unless it is to be quiet."""
    if quiet:
        yield Hooks(on_event, on_step)
        return
    from paceline.views import study_messages  # a study that is quiet does without rich

    past = () if study is None else read_journal(Path(study) / "journal.jsonl")
    with study_messages(None if study is None else Path(study), past) as said:

        def on_expected(expected: ExpectedTime) -> None:
            said.on_expected(*expected)

        yield Hooks(_each(said.on_event, on_event), _each(said.on_step, on_step), on_expected)


def _each(*hooks: "Callable[..., None] | None") -> Callable[..., None]:
    """One hook that calls several in turn."""

    def call(*args: Any) -> None:
        for hook in hooks:
            if hook is not None:
                hook(*args)

    return call
