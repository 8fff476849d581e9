"""A trace from what was logged of a run: rates and values, each at steps of its own, with gaps and restarts."""

from collections.abc import Sequence

import numpy as np

from paceline.errors import InputError
from paceline.traces import Objective, Schedule, Trace, is_sound

Series = list[tuple[int, float]]  # step and number, in the order written
Rate = str | float | Schedule


def constant_rate(rate: "Rate | None", names: Sequence[str]) -> "float | Schedule | None":
    """The rate itself, if the user passed it. None if it is the name of a column, or missing."""
    if rate is None or rate in names:
        return None
    if not isinstance(rate, str):
        return rate
    try:
        return float(rate)
    except ValueError:
        return None


def build_trace(name: str, rates: "Series | float | Schedule", values: Series, mode: str) -> Trace:
    """A run from its rates and values.

    Missing rates are taken from their neighbours. The run failed if its values end with ones that are not finite. A
    `nan` between finite values means "not measured" and is left out.
    """
    objective = Objective(mode)  # pyright: ignore[reportArgumentType]
    try:
        observations, failed = _usable(_latest(values))
        if not observations:
            raise InputError(f"expected finite values, got {len(values)} and none of them finite: name another column")
        schedule = _schedule(rates, observations[-1][0])
        steps, numbers = zip(*observations, strict=True)
        return Trace(np.array(steps), np.array(numbers), schedule, name=name, objective=objective, failed=failed)
    except InputError as error:
        raise InputError(str(error) if name in str(error) else f"{name}: {error}") from error


def _latest(series: Series) -> Series:
    """One entry per step, increasing. After a return to a checkpoint, the later entries replace the earlier ones."""
    entries: Series = []
    for step, number in series:
        while entries and entries[-1][0] >= step:
            entries.pop()
        entries.append((step, number))
    return entries


def _usable(values: Series) -> tuple[Series, bool]:
    """Finite values, then the first value of a failure if the run failed; and whether it did."""
    finite: list[bool] = is_sound(np.array([number for _, number in values])).tolist()
    if not any(finite):
        return [], False
    last = len(finite) - 1 - finite[::-1].index(True)
    usable = [entry for entry, is_finite in zip(values, finite, strict=True) if is_finite]
    has_gaps = any(np.isnan(number) for _, number in values[:last])
    bad = [entry for entry in values[last + 1 :] if not (has_gaps and np.isnan(entry[1]))]
    return [*usable, *bad[:1]], bool(bad)


def _schedule(rates: "Series | float | Schedule", end: int) -> Schedule:
    if isinstance(rates, Schedule):
        return rates
    if isinstance(rates, float | int):
        return Schedule.constant(float(rates), max(end, 1))
    positive = [(step, rate) for step, rate in _latest(rates) if 0 < rate < float("inf")]
    if not positive:
        raise InputError(f"expected positive rates, got {len(rates)} and none above 0: name another with lr=")
    if positive[-1][0] < end:
        positive.append((end, positive[-1][1]))
    steps, numbers = zip(*positive, strict=True)
    return Schedule.from_table(steps, numbers)
