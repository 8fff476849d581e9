"""From the columns or tags of somebody's log to a trace: which one is what, and a run from rates and values.

People log a rate and a loss under many names, at steps of their own, with gaps, from runs that were cut off and begun
again. Names are told by their words (`val/loss`, `lr-AdamW`, `train_learning_rate`); whatever is not clear is said, and
can be named instead.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from paceline.errors import InputError
from paceline.integrations.grouped_warnings import GroupedWarnings
from paceline.traces import Objective, Schedule, Trace

Series = list[tuple[int, float]]  # step and number, in the order written
Rate = str | float | Schedule
_HELD_OUT = {"val", "valid", "validation", "eval", "evaluation", "dev", "test"}
_TRAINING = {"train", "training"}
_STEPS = ("step", "steps", "global step", "global steps", "iteration", "iterations", "iter", "iters", "it", "update")
_MORE_STEPS = ("updates", "train step", "train steps", "training step", "trainer global step", "train global step")


class Kind(NamedTuple):
    """What is looked for: in words, usual names of it, the argument that names it, and how well a name suits."""

    words: str
    usual: str
    argument: str
    rank: Callable[[str], int | None]


def _spoken(name: str) -> str:
    """The words of a name: `lr-Adam/pg1` is "lr adam pg1"."""
    return " ".join(re.findall("[a-z0-9]+", name.lower())).replace("learningrate", "learning rate")


def _step_rank(name: str) -> int | None:
    usual = (*_STEPS, *_MORE_STEPS)
    return usual.index(_spoken(name)) if _spoken(name) in usual else None


def _rate_rank(name: str) -> int | None:
    words = _spoken(name)
    if words in ("lr", "learning rate", "rate"):
        return 0
    if re.search(r"\b(lr|learning rate)$", words):
        return 1
    return 2 if re.search(r"\b(lr|learning rate)\b", words) else None


def _value_rank(name: str) -> int | None:
    words = _spoken(name).split()
    if words == ["value"]:
        return 0
    if "loss" not in words and "nll" not in words:
        return None
    if len(words) == 2 and set(words) & _HELD_OUT:
        return 1
    return 2 if words == ["loss"] else 3 if words[0] in _TRAINING or words[-1] in _TRAINING else 4


STEP = Kind("the step", "step, steps, global_step, iteration", "step= (--step-column)", _step_rank)
RATE = Kind("the learning rate", "lr, learning_rate, train/lr", "lr= (--lr-column)", _rate_rank)
VALUE = Kind("the loss", "loss, value, val_loss, train/loss", "value= (--value-column)", _value_rank)


def pick(
    names: Sequence[str], kind: Kind, given: str | None, where: str, notes: GroupedWarnings, *, thing: str = "column"
) -> str:
    """The name that was given, or the one that suits best; a choice between several is said.

    Args:
        names: what is there.
        kind: what is looked for.
        given: what the user calls it.
        where: the log, for messages.
        notes: where a choice is said.
        thing: what the log is made of, for messages.
    """
    there = f"it has {', '.join(map(repr, names))}" if names else f"it has no {thing}s at all"
    if given is not None:
        if given not in names:
            raise InputError(f"{where} has no {thing} {given!r}: {there}; {kind.argument} takes one of these")
        return given
    ranks = {name: rank for name in names if (rank := kind.rank(name)) is not None}
    if not ranks:
        constant = " Where it was constant and not logged, pass the rate itself." if kind is RATE else ""
        raise InputError(
            f"{where} has no {thing} for {kind.words} (like {kind.usual}), {there}: "
            f"name the right one with {kind.argument}.{constant}"
        )
    best, *others = sorted(ranks, key=lambda name: (ranks[name], names.index(name)))
    if others and kind is not STEP:
        rest = ", ".join(map(repr, others))
        notes.add(f"{where}: {kind.words} is read from {best!r}, not from {rest}: choose with {kind.argument}", where)
    return best


def constant_rate(given: "Rate | None", names: Sequence[str]) -> "float | Schedule | None":
    """The rate itself, where it was given in place of a name."""
    if given is None or given in names:
        return None
    if not isinstance(given, str):
        return given
    try:
        return float(given)
    except ValueError:
        return None


def trace_of(name: str, rates: "Series | float | Schedule", values: Series, mode: str) -> Trace:
    """A run from what was logged of its rates and of its values, each at steps of its own.

    Missing rates are taken from their neighbours. Values that are not finite end the run as failed where none follows;
    `nan` that stands for "not measured", between values that were, is left out.
    """
    objective = Objective(mode)  # pyright: ignore[reportArgumentType]
    try:
        observed, failed = _without_gaps(_newest(values))
        if not observed:
            raise InputError(f"expected finite values, got {len(values)} and none of them finite: name another column")
        schedule = _schedule(rates, observed[-1][0])
        steps, numbers = zip(*observed, strict=True)
        return Trace(np.array(steps), np.array(numbers), schedule, name=name, objective=objective, failed=failed)
    except InputError as error:
        raise InputError(str(error) if name in str(error) else f"{name}: {error}") from error


def _newest(series: Series) -> Series:
    """One entry per step, increasing: a run that went back to a checkpoint is what it did after that."""
    kept: Series = []
    for step, number in series:
        while kept and kept[-1][0] >= step:
            kept.pop()
        kept.append((step, number))
    return kept


def _without_gaps(values: Series) -> tuple[Series, bool]:
    """What can be learnt from, ending with a value that is not finite where the run failed; and whether it did."""
    finite = [abs(number) < 1e100 for _, number in values]
    if not any(finite):
        return [], False
    last = len(finite) - 1 - finite[::-1].index(True)
    kept = [entry for entry, good in zip(values, finite, strict=True) if good]
    missing = any(np.isnan(number) for _, number in values[:last])
    bad = [entry for entry in values[last + 1 :] if not (missing and np.isnan(entry[1]))]
    return [*kept, *bad[:1]], bool(bad)


def _schedule(rates: "Series | float | Schedule", end: int) -> Schedule:
    if isinstance(rates, Schedule):
        return rates
    if isinstance(rates, float | int):
        return Schedule.constant(float(rates), max(end, 1))
    known = [(step, rate) for step, rate in _newest(rates) if 0 < rate < float("inf")]
    if not known:
        raise InputError(f"expected positive rates, got {len(rates)} and none above 0: name another with lr=")
    if known[-1][0] < end:
        known.append((end, known[-1][1]))
    steps, numbers = zip(*known, strict=True)
    return Schedule.from_table(steps, numbers)
