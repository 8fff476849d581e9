"""Priors of a new task's location: where it may be, given the tasks of the family (paper, section 4.4)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import factorial, log, pi
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model.linalg import eye, lower_solve, try_cholesky
from paceline.model.settings import LOCATION
from paceline.model.trace_model import TraceModel


class LocationPrior(ABC):
    """p(w): a distribution over locations of a new task."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "count dims"]:
        """Random locations."""

    @abstractmethod
    def log_density(self, w: Float[Tensor, "n dims"]) -> Float[Tensor, "n"]:
        """Log density at locations, with its constant: densities of several distributions are compared."""


@dataclass(frozen=True, eq=False)
class GaussianPrior(LocationPrior):
    """N(mean, L L')."""

    mean: Float[Tensor, "dims"]
    chol: Float[Tensor, "dims dims"]

    @classmethod
    def around(cls, locations: Float[Tensor, "n dims"]) -> "GaussianPrior":
        """The mean and covariance of these locations, widened because they are few."""
        count, dims = locations.shape
        mean = locations.mean(0)
        scatter = (locations - mean).mT @ (locations - mean) / max(count - 1, 1)
        covariance = (1 + 1 / count) * scatter + LOCATION.nearest**2 * eye(dims)
        return cls.of(mean, covariance)

    @classmethod
    def of(cls, mean: Float[Tensor, "dims"], covariance: Float[Tensor, "dims dims"]) -> "GaussianPrior":
        """From a mean and a covariance."""
        chol = try_cholesky(covariance)
        assert chol is not None, "callers add something to the diagonal"
        return cls(mean, chol)

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "count dims"]:
        """Random locations."""
        return self.mean + torch.randn(count, len(self.mean), dtype=torch.float64, generator=generator) @ self.chol.mT

    def log_density(self, w: Float[Tensor, "n dims"]) -> Float[Tensor, "n"]:
        """log N(w; mean, L L')."""
        e = lower_solve(self.chol, (w - self.mean).mT)
        constant = torch.log(torch.diagonal(self.chol)).sum() + 0.5 * len(self.mean) * log(2 * pi)
        return -0.5 * e.square().sum(0) - constant


@dataclass(frozen=True, eq=False)
class HullPrior(LocationPrior):
    """Uniform over the convex hull of the tasks, as in the paper."""

    corners: Float[Tensor, "n dims"]

    def __post_init__(self) -> None:
        count, dims = self.corners.shape
        flat = count <= dims or np.linalg.matrix_rank((self.corners - self.corners.mean(0)).numpy(), tol=1e-6) < dims
        if flat:
            raise InputError(
                f"the convex hull of {count} tasks has no volume in {dims} dimensions: "
                'use prior="gaussian", or a family of more tasks'
            )

    @cached_property
    def delaunay(self) -> Any:
        """scipy's Delaunay triangulation of the hull; it needs two dimensions or more."""
        from scipy.spatial import Delaunay

        return Delaunay(self.corners.numpy())

    @cached_property
    def simplices(self) -> Float[Tensor, "simplices corners dims"]:
        """The corners of each simplex of the hull."""
        if self.corners.shape[1] == 1:
            return torch.stack([self.corners.min(0).values, self.corners.max(0).values])[None]
        return self.corners[torch.as_tensor(self.delaunay.simplices).long()]

    @cached_property
    def volumes(self) -> Float[Tensor, "simplices"]:
        """The volume of each simplex."""
        edges = self.simplices[:, 1:] - self.simplices[:, :1]
        return torch.det(edges).abs() / factorial(self.corners.shape[1])  # pyright: ignore

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "count dims"]:
        """Random locations: a simplex by its volume, then Dirichlet weights of its corners."""
        chosen = torch.multinomial(self.volumes, count, replacement=True, generator=generator)
        gaps = -torch.log(torch.rand(count, self.simplices.shape[1], dtype=torch.float64, generator=generator))
        return ((gaps / gaps.sum(1, keepdim=True))[..., None] * self.simplices[chosen]).sum(1)

    def log_density(self, w: Float[Tensor, "n dims"]) -> Float[Tensor, "n"]:
        """The same everywhere inside, -inf outside."""
        if self.corners.shape[1] == 1:
            inside = ((w >= self.corners.min()) & (w <= self.corners.max()))[:, 0]
        else:
            in_simplex: Bool[np.ndarray, "n"] = self.delaunay.find_simplex(w.numpy()) >= 0
            inside = torch.as_tensor(in_simplex)
        return torch.where(inside, -torch.log(self.volumes.sum()), -torch.inf).double()


PRIORS: dict[str, Any] = {"gaussian": GaussianPrior.around, "hull": HullPrior}


def location_prior_of(name: str, model: TraceModel) -> LocationPrior:
    """The prior with this name ("gaussian" or "hull"), over the tasks of a model."""
    if name not in PRIORS:
        raise InputError(f"prior must be one of {list(PRIORS)}, got {name!r}: pick one of these")
    embedding = model.posterior.hyper.embedding
    if embedding.numel() == 0:
        raise InputError(
            f"a new task needs a family whose tasks share something, got {len(embedding)} tasks in "
            f"{embedding.shape[1]} dimensions: make the family with dims=2"
        )
    return PRIORS[name](embedding)
