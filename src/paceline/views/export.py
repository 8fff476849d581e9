"""A schedule as a file that works without Paceline: a table, or a short Python function."""

from collections.abc import Sequence

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Constant, Cosine, Exponential, Joined, Linear, OneCycle, Recorded, Shape, WarmupStableDecay
from paceline.traces import Schedule


def as_csv(schedule: Schedule) -> str:
    """A table with the rate at every step."""
    rates = schedule(np.arange(schedule.steps))
    return "".join(["step,rate\n", *(f"{step},{float(rate)!r}\n" for step, rate in enumerate(rates))])


def as_python(schedule: Schedule, origin: str) -> str:
    """A function `learning_rate(step)` that needs nothing but the standard library.

    Args:
        schedule: the schedule.
        origin: the study it comes from, for the docstring.
    """
    changes, multipliers = _pieces(schedule)
    lines, factor = _base_code(schedule.base, schedule.steps)
    multiplier = repr(multipliers[0])
    if changes:
        lines = [f"multipliers = {multipliers}", *lines]
        multiplier = f"multipliers[bisect.bisect_right({changes}, step)]"
    body = [
        f'"""Learning rate of update `step`, counted from 0: {_docstring_text(origin)}."""',
        f"step = min(max(step, 0), {schedule.steps - 1})",
        *lines,
        f"return {multiplier}{factor and ' * '}{factor}",
    ]
    function = "def learning_rate(step):\n" + "".join(f"    {line}\n" for line in body)
    imports = "".join(f"import {name}\n" for name in ("bisect", "math") if f"{name}." in function)
    return f"{imports}\n\n{function}" if imports else function


def _docstring_text(text: str) -> str:
    """Text that cannot end a docstring: names of folders and tasks may come from a stranger's study."""
    return "".join(" " if not c.isprintable() else {"\\": "/", '"': "'"}.get(c, c) for c in text)


def _pieces(schedule: Schedule) -> tuple[list[int], list[float]]:
    """The steps at which the multiplier changes, and the multipliers before and after each."""
    multipliers = [float(multiplier) for multiplier in schedule.multipliers]
    inner = [int(point) for point in schedule.change_points[1:-1]]
    changes = [k for k in range(1, len(multipliers)) if multipliers[k] != multipliers[k - 1]]
    return [inner[k - 1] for k in changes], [multipliers[0], *(multipliers[k] for k in changes)]


def _base_code(base: Shape, steps: int) -> tuple[list[str], str]:
    """A base as code (formulas in shapes.py): some lines, and an expression for its factor at `step`."""
    match base:
        case Constant():
            return [], ""
        case Linear(final):
            return [], _above_final(final, f"(1 - step / {steps})")
        case Cosine(final):
            return [], _above_final(final, f"0.5 * (1 + math.cos(math.pi * step / {steps}))")
        case Exponential(final):
            return [], f"{final} ** (step / {steps})"
        case WarmupStableDecay():
            return _warmup_stable_decay_code(base, steps)
        case OneCycle(warmup, start, final):
            up, down = f"({start}, step / turn)", f"({final}, ({steps} - step) / ({steps} - turn))"
            lines = [f"turn = {warmup * steps}", f"low, share = {up} if step < turn else {down}"]
            return lines, "(low + (1 - low) * 0.5 * (1 - math.cos(math.pi * share)))"
        case Recorded(points, factors) if len(points) == 1:
            return [], repr(factors[0])
        case Recorded(points, factors):
            return _recorded_code(points, factors)
        case Joined(first, first_steps, at, then):
            pieces = _assignment(first, first_steps), _assignment(then, steps)
            return [f"if step < {at}:", *pieces[0], "else:", *pieces[1]], "factor"
        case _:
            raise InputError(f"the base {base.name!r} cannot be written as Python: use --format csv")


def _assignment(base: Shape, steps: int) -> list[str]:
    """Indented lines that assign the factor of a base at `step`."""
    lines, factor = _base_code(base, steps)
    return [f"    {line}" for line in (*lines, f"factor = {factor or 1.0}")]


def _warmup_stable_decay_code(base: WarmupStableDecay, steps: int) -> tuple[list[str], str]:
    rise = f"rise = min(1, (step + 1) / {max(base.warmup * steps, 1.0)})"
    left = f"left = min(1, (1 - step / {steps}) / {max(base.decay, 1.0 / steps)})"
    factor = _above_final(base.final, "left" if base.power == 1 else f"left**{base.power}")
    return [rise, left], f"rise * {factor}"


def _recorded_code(points: Sequence[int], factors: Sequence[float]) -> tuple[list[str], str]:
    """Linear interpolation of the logarithm."""
    lines = [
        f"points, logs = {list(points)}, {[float(log) for log in np.log(factors)]}",
        "i = min(max(bisect.bisect_right(points, step), 1), len(points) - 1)",
        "share = min(max((step - points[i - 1]) / (points[i] - points[i - 1]), 0), 1)",
    ]
    return lines, "math.exp(logs[i - 1] + share * (logs[i] - logs[i - 1]))"


def _above_final(final: float, factor: str) -> str:
    """A factor that falls to `final` instead of 0."""
    return f"({final} + {1 - final} * {factor})" if final else factor
