"""How much tasks have in common, for the law: the correlation of the trace model between them."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from paceline.model.kernels import covariance
from paceline.model.trace_model import TraceModel
from paceline.traces import Trace


def task_correlation(traces: Sequence[Trace], dims: int) -> Float[np.ndarray, "tasks tasks"]:
    """Correlation between tasks, in the order of their names, from the task embedding of a trace model.

    Args:
        traces: runs of all tasks.
        dims: dimensions of the embedding.
    """
    count = len({trace.task for trace in traces})
    model = TraceModel.fit(traces, tasks=dims, intervals=10, clock="log")
    number = torch.arange(count, dtype=torch.float64)
    z = torch.cat([torch.zeros(count, 2, dtype=torch.float64), number[:, None]], 1)
    hyper = model.posterior.hyper
    return (covariance(hyper, z, z)[0] / hyper.variance[0]).detach().numpy()
