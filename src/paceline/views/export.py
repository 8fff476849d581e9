"""A schedule as a file that works without Paceline: a table, or a short Python function.

A study may come from a stranger, and what is written here is run. So it is made of fixed text, and of numbers that are
converted to `float` or `int` where they are written. No name from a journal is in it.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Constant, Cosine, Exponential, Joined, Linear, OneCycle, Recorded, Shape, WarmupStableDecay
from paceline.traces import Schedule

MAX_ROWS, PART_ROWS = 10_000_000, 10_000


def as_csv(schedule: Schedule) -> str:
    """A table with the rate at every step."""
    return "".join(csv_parts(schedule))


def csv_parts(schedule: Schedule) -> Iterator[str]:
    """The same table in parts, each of which is made when it is asked for."""
    if schedule.steps > MAX_ROWS:
        raise InputError(
            f"a table has at most {MAX_ROWS:,} steps, got {schedule.steps:,}: use --format json or --format python"
        )
    return chain(["step,rate\n"], (_rows(schedule, first) for first in range(0, schedule.steps, PART_ROWS)))


def _rows(schedule: Schedule, first: int) -> str:
    steps = range(first, min(first + PART_ROWS, schedule.steps))
    rates = schedule(np.array(steps)).tolist()
    return "".join([f"{step},{rate!r}\n" for step, rate in zip(steps, rates, strict=True)])


def as_python(schedule: Schedule) -> str:
    """A function `learning_rate(step)` that needs nothing but the standard library."""
    changes, multipliers = _pieces(schedule)
    lines, factor = _base_code(schedule.base, schedule.steps)
    multiplier = _real(multipliers[0])
    if changes:
        lines = [f"multipliers = {_reals(multipliers)}", *lines]
        multiplier = f"multipliers[bisect.bisect_right({_wholes(changes)}, step)]"
    body = [
        '"""Learning rate of update `step`, counted from 0."""',
        f"step = min(max(step, 0), {_whole(schedule.steps - 1)})",
        *lines,
        f"return {multiplier}{factor and ' * '}{factor}",
    ]
    function = "def learning_rate(step):\n" + "".join(f"    {line}\n" for line in body)
    imports = "".join(f"import {name}\n" for name in ("bisect", "math") if f"{name}." in function)
    return f"{imports}\n\n{function}" if imports else function


def _real(number: float) -> str:
    return repr(float(number))


def _whole(number: int) -> str:
    return repr(int(number))


def _reals(numbers: Sequence[float]) -> str:
    return f"[{', '.join(map(_real, numbers))}]"


def _wholes(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(_whole, numbers))}]"


def _pieces(schedule: Schedule) -> tuple[list[int], list[float]]:
    """The steps at which the multiplier changes, and the multipliers before and after each."""
    multipliers = [float(multiplier) for multiplier in schedule.multipliers]
    inner = [int(point) for point in schedule.change_points[1:-1]]
    changes = [k for k in range(1, len(multipliers)) if multipliers[k] != multipliers[k - 1]]
    return [inner[k - 1] for k in changes], [multipliers[0], *(multipliers[k] for k in changes)]


def _base_code(base: Shape, steps: int) -> tuple[list[str], str]:
    """A base as code (formulas in shapes.py): some lines, and an expression for its factor at `step`."""
    end = _whole(steps)
    match base:
        case Constant():
            return [], ""
        case Linear(final):
            return [], _above_final(final, f"(1 - step / {end})")
        case Cosine(final):
            return [], _above_final(final, f"0.5 * (1 + math.cos(math.pi * step / {end}))")
        case Exponential(final):
            return [], f"{_real(final)} ** (step / {end})"
        case WarmupStableDecay():
            return _warmup_stable_decay_code(base, steps)
        case OneCycle(warmup, start, final):
            up, down = f"({_real(start)}, step / turn)", f"({_real(final)}, ({end} - step) / ({end} - turn))"
            lines = [f"turn = {_real(warmup * steps)}", f"low, share = {up} if step < turn else {down}"]
            return lines, "(low + (1 - low) * 0.5 * (1 - math.cos(math.pi * share)))"
        case Recorded(points, factors) if len(points) == 1:
            return [], _real(factors[0])
        case Recorded(points, factors):
            return _recorded_code(points, factors)
        case Joined(first, first_steps, at, then):
            pieces = _assignment(first, first_steps), _assignment(then, steps)
            return [f"if step < {_whole(at)}:", *pieces[0], "else:", *pieces[1]], "factor"
        case _:
            raise InputError(f"the base {base.name!r} cannot be written as Python: use --format csv")


def _assignment(base: Shape, steps: int) -> list[str]:
    """Indented lines that assign the factor of a base at `step`."""
    lines, factor = _base_code(base, steps)
    return [f"    {line}" for line in (*lines, f"factor = {factor or 1.0}")]


def _warmup_stable_decay_code(base: WarmupStableDecay, steps: int) -> tuple[list[str], str]:
    rise = f"rise = min(1, (step + 1) / {_real(max(base.warmup * steps, 1.0))})"
    left = f"left = min(1, (1 - step / {_whole(steps)}) / {_real(max(base.decay, 1.0 / steps))})"
    factor = _above_final(base.final, "left" if base.power == 1 else f"left**{_real(base.power)}")
    return [rise, left], f"rise * {factor}"


def _recorded_code(points: Sequence[int], factors: Sequence[float]) -> tuple[list[str], str]:
    """Linear interpolation of the logarithm."""
    lines = [
        f"points, logs = {_wholes(points)}, {_reals([float(log) for log in np.log(factors)])}",
        "i = min(max(bisect.bisect_right(points, step), 1), len(points) - 1)",
        "share = min(max((step - points[i - 1]) / max(points[i] - points[i - 1], 1), 0), 1)",
    ]
    return lines, "math.exp(logs[i - 1] + share * (logs[i] - logs[i - 1]))"


def _above_final(final: float, factor: str) -> str:
    """A factor that falls to `final` instead of 0."""
    return f"({_real(final)} + {_real(1 - final)} * {factor})" if final else factor
