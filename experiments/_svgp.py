"""Sparse Gaussian process classifiers of two digits of MNIST: the tasks of the paper's section 4.3.

The classifier is gpytorch's: 30 inducing points that begin at images, an RBF kernel on images at half their resolution
(196 pixels), a whitened full Gaussian q(u), a Bernoulli likelihood. Its ELBO needs the marginals of q(f) alone, so
these are computed here by the formula, and for several runs at once; gpytorch's own call gives the same number
(tests/experiments) in several times the time.

The trace is -ELBO/N, in nats per image: positive, and the same objective as the ELBO. It is observed on 1,000 images
of the training set, the same for all runs, so that the only noise is that of the run itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import gpytorch
import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from benchmarks._data import folder
from paceline import TorchTraining

PAIRS = {"0/1": (0, 1), "2/3": (2, 3), "4/5": (4, 5), "6/7": (6, 7), "8/9": (8, 9)}
STEPS, EVERY, BATCH, INDUCING, OBSERVED = 1000, 20, 64, 30, 1000
JITTER = 1e-4  # gpytorch's own for float32


class Classifier(gpytorch.models.ApproximateGP):
    """f ~ GP(c, s RBF(l)), with inducing points that begin at `inducing`."""

    def __init__(self, inducing: Tensor, lengthscale: float) -> None:
        q = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, q, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        self.covar_module.base_kernel.lengthscale = lengthscale
        self.covar_module.outputscale = 1.0
        with torch.no_grad():
            self(inducing)  # gpytorch puts q(u) at the prior when it is first called

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@cache
def _quadrature() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.hermite.hermgauss(20)
    return torch.tensor(nodes * 2**0.5).float(), torch.tensor(weights / np.pi**0.5).float()


def parts(model: Classifier) -> dict[str, Tensor]:
    """The parameters by name, with a leading dimension that several runs can be stacked along."""
    named = {name.split(".")[-1]: parameter for name, parameter in model.named_parameters()}
    return {name: p.reshape(1, 1, 1) if p.numel() == 1 else p[None] for name, p in named.items()}


def negative_elbo(p: dict[str, Tensor], x: Tensor, y: Tensor, images: Tensor) -> Tensor:
    """-ELBO/N of each run's batch (runs, batch, pixels) with labels in {-1, 1}; N is the number of all `images`."""
    z, scale, length = p["inducing_points"], softplus(p["raw_outputscale"]), softplus(p["raw_lengthscale"])
    zz, xx = z.square().sum(-1), x.square().sum(-1)
    kzz = scale * torch.exp((z @ z.mT - 0.5 * (zz[:, :, None] + zz[:, None])).clamp_max(0) / length.square())
    kzx = scale * torch.exp((z @ x.mT - 0.5 * (zz[:, :, None] + xx[:, None])).clamp_max(0) / length.square())
    chol, failed = torch.linalg.cholesky_ex(kzz + JITTER * torch.eye(z.shape[1]))
    # mu = A'm, var = k - A'A + A'SA with A = chol^-1 kzx   (paper, eq. qf, whitened)
    a = torch.linalg.solve_triangular(chol, kzx, upper=False)
    m, root = p["variational_mean"], torch.tril(p["chol_variational_covar"])
    mean = (m[:, None] @ a + p["raw_constant"])[:, 0]
    variance = scale[:, 0] + JITTER - a.square().sum(1) + (root.mT @ a).square().sum(1)
    nodes, weights = _quadrature()
    f = mean[..., None] + variance.clamp_min(1e-6).sqrt()[..., None] * nodes
    fit = (torch.special.log_ndtr(y[..., None] * f) @ weights).mean(-1)
    # KL[N(m, RR') || N(0, I)]
    logs = root.diagonal(dim1=1, dim2=2).abs().log().sum(-1)
    kl = 0.5 * (root.square().sum((1, 2)) + m.square().sum(-1) - z.shape[1]) - logs
    return torch.where(failed > 0, torch.nan, kl / images - fit)  # a run that fails does not stop the others


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Images of two digits and their labels, -1 or 1; `observed` are those that runs are observed on."""

    x: Tensor
    y: Tensor
    observed: Tensor

    @classmethod
    def of(cls, pixels: np.ndarray, labels: np.ndarray, observed: int = OBSERVED) -> "Images":
        order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
        return cls(torch.tensor(pixels).float(), torch.tensor(labels).float(), order[:observed])

    @property
    def count(self) -> Tensor:
        """N."""
        return torch.tensor(float(len(self.x)))

    def lengthscale(self) -> float:
        """The median distance between images."""
        some = self.x[self.observed[:500]]
        return float(torch.cdist(some, some).median())


@cache
def _mnist() -> tuple[np.ndarray, np.ndarray]:
    arrays = np.load(folder() / "mnist.npz")
    means = arrays["x_train"].reshape(-1, 14, 2, 14, 2).mean((2, 4), dtype=np.float32) / 255
    return means.reshape(-1, 196), arrays["y_train"]


@cache
def images(task: str) -> Images:
    """The training images of a task."""
    pixels, digits = _mnist()
    own = np.isin(digits, PAIRS[task])
    return Images.of(pixels[own], np.where(digits[own] == PAIRS[task][1], 1.0, -1.0))


class BatchNumbers:
    """Passes over the images in random order. Batches are numbers of images, which the loss looks up."""

    def __init__(self, count: int, size: int = BATCH) -> None:
        self.count, self.size = count, size

    def __iter__(self) -> Iterator[Tensor]:
        order = torch.randperm(self.count)
        yield from order[: self.count // self.size * self.size].split(self.size)


def training(data: Images, seed: int, *, average: bool = False, inducing: int = INDUCING) -> TorchTraining:
    """One run: inducing points, q(u) and the order of the images are those of the seed."""
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    model = Classifier(data.x[torch.randperm(len(data.x))[:inducing]].clone(), data.lengthscale())
    observed = data.x[data.observed][None], data.y[data.observed][None]
    run = TorchTraining(
        model,
        torch.optim.Adam(model.parameters(), fused=True),
        batches=BatchNumbers(len(data.x)),
        loss=lambda model, batch: negative_elbo(parts(model), data.x[batch][None], data.y[batch][None], data.count)[0],
        evaluate=lambda model: negative_elbo(parts(model), *observed, data.count)[0],
        every=EVERY,
        **({} if average else {"average": None}),
    )
    torch.set_rng_state(state)
    return run


def seed_of(task: str, seed: int) -> int:
    """Tasks of one seed have their own randomness."""
    return 100 * seed + list(PAIRS).index(task)


def factory(task: str, seed: int, *, average: bool = False) -> Callable[[], TorchTraining]:
    """A function that makes a run of a task."""
    return lambda: training(images(task), seed_of(task, seed), average=average)
