"""What the law is fitted to: runs as a few rows each, means over stretches that are equal in log steps.

A fork's rows are its own; up to where it was cloned it is its parent, and `splits` says for two runs until when they
were one. Rows carry how far a run is behind the best one at that step: what is far behind counts less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model.law.state import Pieces
from paceline.model.law.terms import HIGHEST, LOWEST
from paceline.model.linalg import tensor
from paceline.traces import Trace, is_sound

PER_RUN, MOST = 40, 1200  # rows of a run, rows in all
AROUND, QUIET, UNKNOWN_NOISE = 24, 1e-4, 0.02  # observations that noise is measured over; its least and its guess
APART = 2.0  # times its first loss: a run that ends above has come apart
STATES = 2000  # steps of a run at which its state is worked out, the cost of which grows with their square
FIRST = 0.01  # the share of a run from which on it is read: before, the clock is not yet log steps
WINDOW = 0.3  # of the running mean that says how high a run is, in log steps either way
NODES = LOWEST + (HIGHEST - LOWEST) * (1 - np.cos(np.pi * np.arange(12) / 11)) / 2


def weights(g: float) -> Float[np.ndarray, "nodes"]:
    """Of the values at NODES, so that their sum is the value at g (Lagrange's polynomial, barycentric form)."""
    gap = g - NODES
    if np.abs(gap).min() < 1e-12:
        return (np.abs(gap) < 1e-12).astype(float)
    signs = (-1.0) ** np.arange(len(NODES))
    signs[[0, -1]] /= 2
    return signs / gap / np.sum(signs / gap)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of all runs, one after the other.

    Args:
        loss: mean of the observations behind a row, as a positive loss.
        level: mean of a running mean of the run, free of most noise.
        behind: level over that of the best run at the step, at least 1.
        noise: relative deviation of the row that is due to the noise of its observations.
        single: that of one observation.
        log_step, log10_lr: where and at which rate.
        summed: S.
        modes: N at each node of g.
        run, task: numbers.
    """

    loss: Float[np.ndarray, "rows"]
    level: Float[np.ndarray, "rows"]
    behind: Float[np.ndarray, "rows"]
    noise: Float[np.ndarray, "rows"]
    single: Float[np.ndarray, "rows"]
    log_step: Float[np.ndarray, "rows"]
    log10_lr: Float[np.ndarray, "rows"]
    rate_sum: Float[Tensor, "rows"]
    modes: Float[Tensor, "nodes rows modes"]
    run: Int[np.ndarray, "rows"]
    task: Int[np.ndarray, "rows"]

    @property
    def span(self) -> float:
        """Deviation of the log loss: how much there is to explain."""
        return max(float(np.log(self.level).std()), 0.01)

    @property
    def typical(self) -> float:
        """A typical loss."""
        return float(np.median(self.level))


@dataclass(frozen=True, slots=True)
class Units:
    """From the user's values to a positive loss: loss = -sign value - floor; and what scales rates and S.

    A loss that is positive is taken as it is. Any other gets a floor as far below its best value as values spread.
    """

    sign: float
    floor: float
    largest: float
    reference: float
    first_step: int

    @classmethod
    def of(cls, traces: Sequence[Trace]) -> "Units":
        """Units in which these runs are easy to describe."""
        sign = traces[0].objective.sign
        losses = -sign * np.concatenate([trace.values[_is_learnt(trace.values, trace)] for trace in traces])
        if not losses.size:
            raise InputError(
                f"expected at least one finite value, got none in {len(traces)} run(s): "
                "pass a run that did not fail at once, or lower its rate"
            )
        low, high = float(losses.min()), float(losses.max())
        floor = 0.0 if low > 0 else low - max(high - low, 1e-9 * abs(low), 1e-12)
        ends = [Pieces.of(trace.schedule, np.array([max(trace.last_step, 1)])) for trace in traces]
        largest = max(float(pieces.rate_sum()[0][-1]) for pieces in ends)
        reference = max(float(pieces.rates.max()) for pieces in ends)
        whole = max(max(trace.schedule.steps, trace.last_step) for trace in traces)
        return cls(sign, floor, largest, reference, max(1, int(FIRST * whole)))

    def loss(self, values: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        """User's values -> positive loss."""
        return -self.sign * values - self.floor

    def values(self, loss: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """The inverse of `loss`."""
        return -self.sign * (loss + self.floor)


def observed(trace: Trace, units: Units, *, whole: bool = False) -> tuple[Int[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Steps and losses that can be learnt from: the trace's own, or with `whole` also its ancestors'."""
    steps, values = trace.path() if whole else (trace.steps, trace.values)
    loss = units.loss(np.where(_is_learnt(values, trace), values, np.nan))
    good = (steps >= units.first_step) & (loss > 0)
    if not good.any() and (steps > 0).any():  # a run that has only just begun
        good = (steps > 0) & (loss > 0)
    return steps[good], loss[good]


def _is_learnt(values: Float[np.ndarray, "n"], trace: Trace) -> Bool[np.ndarray, "n"]:
    """Which values count: all sound ones; of a run that failed, those until it was last no worse than at its first."""
    sound = is_sound(values)
    if not trace.failed or not sound.any():
        return sound
    gain = trace.objective.sign * np.where(sound, values, np.nan)
    last = np.flatnonzero(gain >= gain[sound][0])[-1]
    return sound & (np.arange(len(values)) <= last)


def stretches(steps: Int[np.ndarray, "n"], most: int) -> Int[np.ndarray, "n"]:
    """Number of the stretch that each step lies in; stretches are equal in log steps, empty ones are left out."""
    at = np.log(steps)
    width = max((at[-1] - at[0]) / most, 1e-9)
    return np.unique(np.minimum(((at - at[0]) / width).astype(int), most - 1), return_inverse=True)[1]


def averaging(stretch: Int[np.ndarray, "n"]) -> tuple[Float[np.ndarray, "rows n"], Float[np.ndarray, "rows"]]:
    """The matrix that takes the mean over each stretch, and how many lie in it."""
    mean = np.zeros((stretch[-1] + 1, len(stretch)))
    mean[stretch, np.arange(len(stretch))] = 1.0
    count = mean.sum(1)
    return mean / count[:, None], count


def thinned(stretch: Int[np.ndarray, "n"], most: int = STATES) -> Int[np.ndarray, "some"]:
    """Numbers of at most so many observations, evenly from each stretch; all where there are no more."""
    if len(stretch) <= most:
        return np.arange(len(stretch))
    rows = int(stretch[-1]) + 1
    ends: list[int] = np.searchsorted(stretch, np.arange(rows + 1)).tolist()
    quota = max(1, most // rows)
    return np.unique(np.concatenate([np.linspace(a, b - 1, quota).astype(int) for a, b in pairwise(ends)]))


def running_mean(steps: Int[np.ndarray, "n"], loss: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Mean over a window in log steps."""
    at, total = np.log(steps), np.concatenate([[0.0], np.cumsum(loss)])
    low, high = np.searchsorted(at, at - WINDOW), np.searchsorted(at, at + WINDOW, side="right")
    return (total[high] - total[low]) / (high - low)


def noise_level(level: Float[np.ndarray, "n"], loss: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Relative deviation of single observations around each step, from second differences, which no trend enters."""
    if len(loss) < 4:
        return np.full(len(loss), UNKNOWN_NOISE)
    square = np.diff(loss / level, 2) ** 2 / 6.0
    square = np.concatenate([square[:1], square, square[-1:]])
    around = np.minimum(AROUND, len(square))
    total = np.concatenate([[0.0], np.cumsum(square)])
    low = np.clip(np.arange(len(square)) - around // 2, 0, len(square) - around)
    return np.sqrt((total[low + around] - total[low]) / around + QUIET**2)


def rows_of(traces: Sequence[Trace], units: Units, tasks: Sequence[str]) -> Rows | None:
    """Rows of these runs, None where nothing was observed; a run that failed is read as long as it did not."""
    known = [(trace, *observed(trace, units)) for trace in traces]
    known = [(trace, steps, loss) for trace, steps, loss in known if len(steps)]
    if not known:
        return None
    levels = [running_mean(steps, loss) for _, steps, loss in known]
    per_run = max(4, min(PER_RUN, MOST // len(known)))
    nodes, parts = tensor(NODES), list[tuple[Tensor, Tensor, np.ndarray]]()
    for number, ((trace, steps, loss), level) in enumerate(zip(known, levels, strict=True)):
        task = tasks.index(trace.task) if tasks else 0
        rivals = [
            np.interp(steps, other, high, left=np.inf, right=np.inf)
            for (rival, other, _), high in zip(known, levels, strict=True)
            if not tasks or rival.task == trace.task
        ]
        behind = np.maximum(1.0, level / np.min([level, *rivals], axis=0))
        stretch = stretches(steps, per_run)
        mean, count = averaging(stretch)
        some = thinned(stretch)
        pieces = Pieces.of(trace.schedule, steps[some])
        noise = noise_level(level, loss)
        columns = np.stack([loss, level, behind, noise**2, np.log(steps), np.log10(trace.schedule(steps - 1))])
        numbers = np.array([[number], [task]]) * np.ones(len(count))
        modes = pieces.noise(nodes, units.reference, units.largest)
        average = tensor(averaging(stretch[some])[0])
        parts.append(
            (average @ pieces.rate_sum()[0], average @ modes, np.concatenate([columns @ mean.T, count[None], numbers]))
        )
    loss, level, behind, square, log_step, log10_lr, count, run, task = np.concatenate([part[2] for part in parts], 1)
    rate_sum, modes = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts], 1)
    run, task = run.astype(int), task.astype(int)
    return Rows(
        loss, level, behind, np.sqrt(square / count), np.sqrt(square), log_step, log10_lr, rate_sum, modes, run, task
    )


def holds_together(trace: Trace) -> bool:
    """Whether a run neither failed nor ended far above where it began: the law does not describe what comes apart."""
    _, values = trace.path()
    if trace.failed or trace.objective.mode == "max" or not is_sound(values).all() or values[0] <= 0:
        return not trace.failed
    few, first = max(1, len(trace.values) // 8), float(np.max(values[: max(1, len(values) // 8)]))
    return float(np.mean(trace.values[-few:])) < APART * first and float(values.max()) < 5 * APART * first


def holding(traces: Sequence[Trace]) -> list[Trace]:
    """The runs that hold together; all of them where none does."""
    return [trace for trace in traces if holds_together(trace)] or list(traces)


def used(traces: Sequence[Trace], units: Units) -> list[Trace]:
    """The traces that `rows_of` has rows of, in their order."""
    return [trace for trace in traces if len(observed(trace, units)[0])]


def split(one: Trace, other: Trace) -> float:
    """Log of the step until which two runs were the same run; infinite for one run, -inf for strangers."""
    until = -np.inf
    for (a, end), (b, other_end) in zip(_chain(one), _chain(other), strict=False):
        if not _is_same(a, b):
            break
        until = min(end, other_end)
        if end != other_end:
            break
    return float(np.log(until)) if until > 0 else -np.inf


def _chain(trace: Trace) -> list[tuple[Trace, float]]:
    """The ancestors of a run and itself, oldest first, each with the step at which the run leaves it."""
    chain, end = list[tuple[Trace, float]](), np.inf
    current: Trace | None = trace
    while current is not None:
        chain.insert(0, (current, end))
        end, current = min(end, float(max(current.fork_step, 1))), current.parent
    return chain


def _is_same(one: Trace, other: Trace) -> bool:
    return one is other or (bool(one.name) and one.name == other.name and one.task == other.task)
