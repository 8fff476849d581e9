"""What the law is fitted to: each run as a few rows, means over stretches that are equal in log steps.

A row also says how far its run is behind the best one at that step. Runs that are far behind count less.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.model.law.settings import FORM, ROWS
from paceline.model.law.smoothing import averaging, noise_level, running_mean, stretches, thin
from paceline.model.law.state import SchedulePieces
from paceline.model.law.units import Units, usable_observations
from paceline.model.linalg import tensor
from paceline.traces import Trace

# Chebyshev nodes of g between its bounds: the modes of a row are computed there and interpolated.
NODES = FORM.g_low + (FORM.g_high - FORM.g_low) * (1 - np.cos(np.pi * np.arange(ROWS.nodes) / (ROWS.nodes - 1))) / 2


def interpolation_weights(g: float) -> Float[np.ndarray, "nodes"]:
    """Weights of values at NODES whose sum is the value at g (Lagrange's polynomial, barycentric form)."""
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
        loss: mean of the observations of a row, as a positive loss.
        level: mean of the run's running mean, which has little noise.
        behind: level divided by that of the best run at the step, at least 1.
        noise: relative deviation of the row that is due to the noise of its observations.
        single_noise: relative deviation of one observation.
        log_step, log10_lr: mean log of step and rate.
        rate_sum: S.
        modes: N at each node of g.
        run, task: numbers of the run and of its task.
    """

    loss: Float[np.ndarray, "rows"]
    level: Float[np.ndarray, "rows"]
    behind: Float[np.ndarray, "rows"]
    noise: Float[np.ndarray, "rows"]
    single_noise: Float[np.ndarray, "rows"]
    log_step: Float[np.ndarray, "rows"]
    log10_lr: Float[np.ndarray, "rows"]
    rate_sum: Float[Tensor, "rows"]
    modes: Float[Tensor, "nodes rows modes"]
    run: Int[np.ndarray, "rows"]
    task: Int[np.ndarray, "rows"]

    @property
    def span(self) -> float:
        """Deviation of the log levels: how much there is to explain."""
        return max(float(np.log(self.level).std()), 0.01)

    @property
    def typical(self) -> float:
        """A typical loss."""
        return float(np.median(self.level))


def rows_of(traces: Sequence[Trace], units: Units, tasks: Sequence[str]) -> Rows | None:
    """The rows of these runs; None if there is no observation."""
    runs = [(trace, *usable_observations(trace, units)) for trace in traces]
    runs = [(trace, steps, loss) for trace, steps, loss in runs if len(steps)]
    if not runs:
        return None
    levels = [running_mean(steps, loss) for _, steps, loss in runs]
    per_run = max(ROWS.fewest, min(ROWS.per_run, ROWS.total // len(runs)))
    nodes, parts = tensor(NODES), list[tuple[Tensor, Tensor, np.ndarray]]()
    for number, ((trace, steps, loss), level) in enumerate(zip(runs, levels, strict=True)):
        task = tasks.index(trace.task) if tasks else 0
        rivals = [
            np.interp(steps, rival_steps, rival_level, left=np.inf, right=np.inf)
            for (rival, rival_steps, _), rival_level in zip(runs, levels, strict=True)
            if not tasks or rival.task == trace.task
        ]
        behind = np.maximum(1.0, level / np.min([level, *rivals], axis=0))
        stretch = stretches(steps, per_run)
        mean, count = averaging(stretch)
        some = thin(stretch)
        pieces = SchedulePieces.of(trace.schedule, steps[some])
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
    return Rows(
        loss=loss,
        level=level,
        behind=behind,
        noise=np.sqrt(square / count),
        single_noise=np.sqrt(square),
        log_step=log_step,
        log10_lr=log10_lr,
        rate_sum=rate_sum,
        modes=modes,
        run=run.astype(int),
        task=task.astype(int),
    )


def runs_with_rows(traces: Sequence[Trace], units: Units) -> list[Trace]:
    """The traces that `rows_of` makes rows of, in their order."""
    return [trace for trace in traces if len(usable_observations(trace, units)[0])]
