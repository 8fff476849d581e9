"""A schedule as a file that needs no paceline: a table, or a short Python function."""

import numpy as np

from paceline.errors import InputError
from paceline.shapes import Constant, Cosine, Exponential, Linear, OneCycle, Recorded, Shape, WarmupStableDecay
from paceline.traces import Schedule


def as_csv(schedule: Schedule) -> str:
    """A table of the rate at every step."""
    rates = schedule(np.arange(schedule.steps))
    return "".join(["step,rate\n", *(f"{step},{float(rate)!r}\n" for step, rate in enumerate(rates))])


def as_python(schedule: Schedule, origin: str) -> str:
    """A function `learning_rate(step)` that needs nothing but the standard library.

    Args:
        schedule: the schedule.
        origin: where it comes from, for the docstring.
    """
    points, rates = _pieces(schedule)
    body, factor = _factor(schedule.base, schedule.steps)
    multiplier = repr(rates[0])
    if points:
        body, multiplier = [f"multipliers = {rates}", *body], f"multipliers[bisect.bisect_right({points}, step)]"
    lines = [
        f'"""Learning rate of update `step`, counted from 0: {_harmless(origin)}."""',
        f"step = min(max(step, 0), {schedule.steps - 1})",
        *body,
        f"return {multiplier}{factor and ' * '}{factor}",
    ]
    text = "def learning_rate(step):\n" + "".join(f"    {line}\n" for line in lines)
    imports = "".join(f"import {name}\n" for name in ("bisect", "math") if f"{name}." in text)
    return f"{imports}\n\n{text}" if imports else text


def _harmless(text: str) -> str:
    """Text that cannot end a docstring: names of folders and tasks may come from a stranger's study."""
    return "".join(" " if not c.isprintable() else {"\\": "/", '"': "'"}.get(c, c) for c in text)


def _pieces(schedule: Schedule) -> tuple[list[int], list[float]]:
    """Steps at which the multiplier really changes, and the multipliers."""
    rates = [float(rate) for rate in schedule.multipliers]
    inner = [int(point) for point in schedule.change_points[1:-1]]
    kept = [k for k in range(1, len(rates)) if rates[k] != rates[k - 1]]
    return [inner[k - 1] for k in kept], [rates[0], *(rates[k] for k in kept)]


def _factor(base: Shape, steps: int) -> tuple[list[str], str]:
    """The factor of a base (formulas in shapes.py) as an expression of `step`, and the lines it needs."""
    match base:
        case Constant():
            return [], ""
        case Linear(final):
            return [], _above(final, f"(1 - step / {steps})")
        case Cosine(final):
            return [], _above(final, f"0.5 * (1 + math.cos(math.pi * step / {steps}))")
        case Exponential(final):
            return [], f"{final} ** (step / {steps})"
        case WarmupStableDecay(warmup, decay, final, power):
            rise = f"rise = min(1, (step + 1) / {max(warmup * steps, 1.0)})"
            left = f"left = min(1, (1 - step / {steps}) / {max(decay, 1.0 / steps)})"
            return [rise, left], f"rise * {_above(final, 'left' if power == 1 else f'left**{power}')}"
        case OneCycle(warmup, start, final):
            up, down = f"({start}, step / turn)", f"({final}, ({steps} - step) / ({steps} - turn))"
            lines = [f"turn = {warmup * steps}", f"low, way = {up} if step < turn else {down}"]
            return lines, "(low + (1 - low) * 0.5 * (1 - math.cos(math.pi * way)))"
        case Recorded(at, factors) if len(at) == 1:
            return [], repr(factors[0])
        case Recorded(at, factors):
            lines = [
                f"at, logs = {list(at)}, {[float(x) for x in np.log(factors)]}",
                "i = min(max(bisect.bisect_right(at, step), 1), len(at) - 1)",
                "way = min(max((step - at[i - 1]) / (at[i] - at[i - 1]), 0), 1)",
            ]
            return lines, "math.exp(logs[i - 1] + way * (logs[i] - logs[i - 1]))"
        case _:
            raise InputError(f"the base {base.name!r} has no Python form: use --format csv")


def _above(final: float, factor: str) -> str:
    """A factor that falls to `final` in place of 0."""
    return f"({final} + {1 - final} * {factor})" if final else factor
