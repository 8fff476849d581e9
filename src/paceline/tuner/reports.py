"""What a fork observed over one interval, checked when it comes in."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from paceline.errors import InputError
from paceline.study import Failure, Interval, KeepRule, failure_of_values

Values = Sequence[float] | Mapping[str, Sequence[float]]
Columns = dict[str, tuple[float, ...]]


def checked(interval: Interval, steps: Sequence[int], values: Values) -> tuple[tuple[int, ...], Columns]:
    """A report as steps and named columns, or what is wrong with it."""
    named = dict(values) if isinstance(values, Mapping) else {"raw": values}
    try:
        at = tuple(int(step) for step in steps)
        columns = {of: tuple(float(v) for v in column) for of, column in named.items()}
    except (TypeError, ValueError) as error:
        raise InputError(
            f"expected a list of steps and a list of numbers for each kind of weights, got something else ({error}): "
            'report like tell(interval, [10, 20], {"raw": [0.9, 0.8]})'
        ) from error
    if not at or not columns:
        raise InputError(
            f"fork {interval.fork} reported nothing between steps {interval.start:,} and {interval.stop:,}: "
            "observe at least once per interval (every=), or call fail()"
        )
    if any(len(column) != len(at) for column in columns.values()) or set(columns) - {"raw", "averaged"}:
        got = ", ".join(f"{len(column)} under {of!r}" for of, column in columns.items())
        raise InputError(
            f"expected one value per step under 'raw' or 'averaged', got {len(at):,} steps and {got}: report like "
            'tell(interval, [10, 20], {"raw": [0.9, 0.8]})'
        )
    before = interval.start if interval.start else -1  # a run may be observed before its first step
    if any(b <= a for a, b in pairwise((before, *at))) or at[-1] > interval.stop:
        raise InputError(
            f"steps must increase within ({interval.start}, {interval.stop}], got {at[0]}..{at[-1]}: report those alone"
        )
    return at, columns


def check_kept(kept: int | None, at: tuple[int, ...], interval: Interval, rule: KeepRule | None) -> None:
    """Refuse a kept state that the report does not know of."""
    if kept is None:
        return
    if rule is None:
        raise InputError(f'kept={kept} was reported, and the study keeps the ends of runs: pass keep="best" to it')
    if kept not in at:
        raise InputError(
            f"kept must be one of the steps that fork {interval.fork} reported, got {kept}: name the step whose state "
            "was kept"
        )


def unsound_value(steps: tuple[int, ...], columns: Columns) -> Failure | None:
    """The failure of a report with a value that cannot be learnt from; None if all of them can."""
    for row, step in enumerate(steps):
        failure = failure_of_values([column[row] for column in columns.values()], step)
        if failure is not None:
            return failure
    return None
