"""The task embedding: locations of tasks, and where a new task is placed among them.

k(z, z') = s^2 k_Y(Y, Y') k_x(x, x') k_w(w, w')   (paper, section 4.1)

The location w of each task is a hyperparameter with a N(0, I) prior. The input of an interval has its task's number,
and the kernel looks the location up. Only distances matter, so locations are determined up to a rotation and
reflections; `on_principal_axes` fixes these for display. Without dimensions (L = 0) k_w is 1 within a task and 0
between tasks.
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
from paceline.model.sites import ExpectedLogLikelihood, Projection, Sites, solve_sites


def on_principal_axes(embedding: Float[np.ndarray, "tasks dims"]) -> Float[np.ndarray, "tasks dims"]:
    """The locations on their principal axes, widest first; each axis points to the task farthest out on it.

    This is a rotation with reflections about the origin, the centre of the prior. So the model stays the same.

    >>> on_principal_axes(np.array([[0.0, -2.0], [0.0, 1.0]]))
    array([[ 2.,  0.],
           [-1.,  0.]])
    """
    return embedding @ principal_axes(embedding) + 0.0


def principal_axes(embedding: Float[np.ndarray, "tasks dims"]) -> Float[np.ndarray, "dims dims"]:
    """The axes of `on_principal_axes`, as columns; the locations of other tasks are shown on the same axes."""
    if embedding.size == 0:
        return np.eye(embedding.shape[1])
    centred = embedding - embedding.mean(0)
    axes = np.linalg.svd(centred, full_matrices=True)[2].T
    spread = centred @ axes
    signs = np.sign(spread[np.abs(spread).argmax(0), np.arange(spread.shape[1])])
    return axes * np.where(signs == 0, 1.0, signs)


def as_location(w: "Sequence[float] | np.ndarray | Tensor") -> Float[Tensor, "dims"]:
    """A location as a tensor."""
    return w.double() if isinstance(w, Tensor) else tensor(np.asarray(w, dtype=float))


def with_location(
    hyper: Hyperparameters, w: Float[Tensor, "dims"], coordinates: Float[Tensor, "coordinates"]
) -> Hyperparameters:
    """The hyperparameters with one more task, at w, with these known coordinates."""
    dims = hyper.embedding.shape[1]
    if w.shape != (dims,):
        raise InputError(f"a location must have {dims} coordinates, got {tuple(w.shape)}: pass as many numbers")
    known = torch.cat([hyper.coordinates, coordinates[None]])
    return replace(hyper, embedding=torch.cat([hyper.embedding, w[None]]), coordinates=known)


def distances(
    hyper: Hyperparameters, w: Float[Tensor, "dims"], coordinates: Float[Tensor, "coordinates"]
) -> Float[Tensor, "tasks"]:
    """How far each task is from a location with these coordinates, in lengthscales."""
    apart = (hyper.coordinates - coordinates) * torch.exp(-hyper.log_coordinate_lengthscales)
    return ((hyper.embedding - w).square().sum(1) + apart.square().sum(1)).sqrt()


def place_tasks(
    hyper: Hyperparameters,
    new: Float[Tensor, "new coordinates"],
    *,
    inputs: Float[Tensor, "n d"],
    likelihood: ExpectedLogLikelihood,
    sites: Sites,
    inducing: Int[Tensor, "m"],
    centre: Float[Tensor, "p"],
) -> Hyperparameters:
    """Hyperparameters with more tasks, each placed where the runs are most probable. The optimiser starts there.

    Candidates are the centre of the prior, the locations of the other tasks, and half of these. Tasks that have no
    place yet are at the centre. `new` are the known coordinates of the new tasks.
    """
    old, dims = len(hyper.embedding), hyper.embedding.shape[1]
    for coordinates in new:
        hyper = with_location(hyper, zeros(dims), coordinates)
    if dims == 0:
        return hyper
    for task in range(old, old + len(new)):
        others = hyper.embedding[:task]
        best_score, best = -np.inf, hyper
        for w in (zeros(dims), *(0.5 * others), *others):
            embedding = hyper.embedding.clone()
            embedding[task] = w
            candidate = replace(hyper, embedding=embedding)
            _, bound = solve_sites(Projection.of(candidate, inputs, inputs[inducing]), sites, likelihood)
            score = bound + float(log_prior(candidate, centre))
            if score > best_score:
                best_score, best = score, candidate
        hyper = best
    return hyper
