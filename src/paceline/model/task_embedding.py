"""Tasks of a family: where they lie in the space of embeddings, and how one more is placed among them.

k(z, z') = s^2 k_Y(Y, Y') k_x(x, x') k_w(w, w')   (paper, section 4.1)

The location w of each task is a hyperparameter with a N(0, I) prior; an interval's input carries its task's number, and
the kernel looks the location up. Only distances enter, so locations are known up to a rotation and reflections:
`on_principal_axes` fixes these for showing. Without dimensions (L = 0) k_w is 1 within a task and 0 between tasks.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from paceline.errors import InputError
from paceline.model.kernels import Hyperparameters, log_prior
from paceline.model.linalg import tensor, zeros
from paceline.model.posterior import ExpectedLogLikelihood, Projection, Sites, solve_sites


def on_principal_axes(embedding: Float[np.ndarray, "tasks dims"]) -> Float[np.ndarray, "tasks dims"]:
    """The same locations on their principal axes, widest first, each axis towards the task farthest out on it.

    A rotation and reflections about the origin, where the prior is centred, so all that is known stays the same.

    >>> canonical(np.array([[0.0, -2.0], [0.0, 1.0]]))
    array([[ 2.,  0.],
           [-1.,  0.]])
    """
    return embedding @ principal_axes(embedding) + 0.0


def principal_axes(embedding: Float[np.ndarray, "tasks dims"]) -> Float[np.ndarray, "dims dims"]:
    """The axes of `on_principal_axes`, as columns; places of other tasks are shown on the same."""
    if embedding.size == 0:
        return np.eye(embedding.shape[1])
    centred = embedding - embedding.mean(0)
    axes = np.linalg.svd(centred, full_matrices=True)[2].T
    spread = centred @ axes
    signs = np.sign(spread[np.abs(spread).argmax(0), np.arange(spread.shape[1])])
    return axes * np.where(signs == 0, 1.0, signs)


def with_location(hyper: Hyperparameters, w: Float[Tensor, "dims"]) -> Hyperparameters:
    """The hyperparameters with one more task, at w."""
    dims = hyper.embedding.shape[1]
    if w.shape != (dims,):
        raise InputError(f"a task's location has {dims} coordinates here, got {tuple(w.shape)}: pass as many")
    return replace(hyper, embedding=torch.cat([hyper.embedding, w[None]]))


def placed(
    hyper: Hyperparameters,
    new: int,
    *,
    inputs: Float[Tensor, "n d"],
    likelihood: ExpectedLogLikelihood,
    sites: Sites,
    inducing: Int[Tensor, "m"],
    centre: Float[Tensor, "p"],
) -> Hyperparameters:
    """Hyperparameters with `new` more tasks, each where the runs are most probable: an optimiser's start.

    Tried are the prior's centre and halfway from it, and all the way, to each task that is known; the tasks still to be
    placed wait at the centre meanwhile.
    """
    known, dims = len(hyper.embedding), hyper.embedding.shape[1]
    for _ in range(new):
        hyper = with_location(hyper, zeros(dims))
    if dims == 0:
        return hyper
    for task in range(known, known + new):
        others = hyper.embedding[:task]
        best, found = -np.inf, hyper
        for w in (zeros(dims), *(0.5 * others), *others):
            embedding = hyper.embedding.clone()
            embedding[task] = w
            moved = replace(hyper, embedding=embedding)
            _, bound = solve_sites(Projection.of(moved, inputs, inputs[inducing]), sites, likelihood)
            score = bound + float(log_prior(moved, centre))
            if score > best:
                best, found = score, moved
        hyper = found
    return hyper


def location(w: "Sequence[float] | np.ndarray | Tensor") -> Float[Tensor, "dims"]:
    """A location as a tensor."""
    return w.double() if isinstance(w, Tensor) else tensor(np.asarray(w, dtype=float))
