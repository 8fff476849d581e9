"""Which column of a table, or tag of an event file, is the step, the learning rate or the value.

People name them in many ways: `val/loss`, `lr-AdamW`, `train_learning_rate`. A column is recognised by the words in its
name. If several fit, the choice is reported; the user can always name the column.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from paceline.errors import InputError
from paceline.integrations.grouped_warnings import GroupedWarnings

_HELD_OUT = {"val", "valid", "validation", "eval", "evaluation", "dev", "test"}
_TRAINING = {"train", "training"}
_STEPS = ("step", "steps", "global step", "global steps", "iteration", "iterations", "iter", "iters", "it", "update")
_MORE_STEPS = ("updates", "train step", "train steps", "training step", "trainer global step", "train global step")


class ColumnKind(NamedTuple):
    """A kind of column to look for.

    Args:
        description: what it is, for messages.
        examples: usual names, for messages.
        argument: the argument that names it, for messages.
        rank: how well a name fits: 0 is best, None does not fit.
    """

    description: str
    examples: str
    argument: str
    rank: Callable[[str], int | None]


def _words(name: str) -> str:
    """The words of a name: `lr-Adam/pg1` is "lr adam pg1"."""
    return " ".join(re.findall("[a-z0-9]+", name.lower())).replace("learningrate", "learning rate")


def _step_rank(name: str) -> int | None:
    usual = (*_STEPS, *_MORE_STEPS)
    return usual.index(_words(name)) if _words(name) in usual else None


def _rate_rank(name: str) -> int | None:
    words = _words(name)
    if words in ("lr", "learning rate", "rate"):
        return 0
    if re.search(r"\b(lr|learning rate)$", words):
        return 1
    return 2 if re.search(r"\b(lr|learning rate)\b", words) else None


def _value_rank(name: str) -> int | None:
    words = _words(name).split()
    if words == ["value"]:
        return 0
    if "loss" not in words and "nll" not in words:
        return None
    if len(words) == 2 and set(words) & _HELD_OUT:
        return 1
    return 2 if words == ["loss"] else 3 if words[0] in _TRAINING or words[-1] in _TRAINING else 4


STEP = ColumnKind("the step", "step, steps, global_step, iteration", "step= (--step-column)", _step_rank)
RATE = ColumnKind("the learning rate", "lr, learning_rate, train/lr", "lr= (--lr-column)", _rate_rank)
VALUE = ColumnKind("the loss", "loss, value, val_loss, train/loss", "value= (--value-column)", _value_rank)


def choose_column(
    names: Sequence[str],
    kind: ColumnKind,
    name: str | None,
    log: str,
    grouped: GroupedWarnings,
    *,
    thing: str = "column",
) -> str:
    """The column that the user named, or the one that fits best. A choice between several is a warning.

    Args:
        names: the columns that there are.
        kind: the kind to look for.
        name: the user's name for it, if any.
        log: the log, for messages.
        grouped: collects the warning.
        thing: what the log is made of, for messages.
    """
    offer = f"it has {', '.join(map(repr, names))}" if names else f"it has no {thing}s at all"
    if name is not None:
        if name not in names:
            raise InputError(f"{log} has no {thing} {name!r}: {offer}; {kind.argument} takes one of these")
        return name
    ranks = {column: rank for column in names if (rank := kind.rank(column)) is not None}
    if not ranks:
        constant = " If it was constant and not logged, pass the rate itself." if kind is RATE else ""
        raise InputError(
            f"{log} has no {thing} for {kind.description} (like {kind.examples}), {offer}: "
            f"name the right one with {kind.argument}.{constant}"
        )
    best, *others = sorted(ranks, key=lambda column: (ranks[column], names.index(column)))
    if others and kind is not STEP:
        rest = ", ".join(map(repr, others))
        message = f"{log}: {kind.description} is read from {best!r}, not from {rest}: choose with {kind.argument}"
        grouped.add(message, log)
    return best
