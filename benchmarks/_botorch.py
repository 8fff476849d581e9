"""Independent Bayesian optimisation of each task with BoTorch, as its documentation advises for noisy values.

`SingleTaskGP` with its default priors and standardised outcomes on x in the unit cube, a Sobol start, then
`qLogNoisyExpectedImprovement` with `prune_baseline`. Only `benchmarks.tasks` needs it: `pip install -e '.[peers]'`.
"""

import warnings

import numpy as np
import torch


def model_of(x: np.ndarray, y: np.ndarray):
    """The fitted model of -y, which is maximised."""
    try:
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
    except ImportError as error:
        raise SystemExit("independent optimisation needs BoTorch: pip install -e '.[peers]'") from error
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(torch.tensor(x), -torch.tensor(y)[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def cube(d: int) -> torch.Tensor:
    return torch.stack([torch.zeros(d), torch.ones(d)]).double()


def sobol(count: int, d: int, seed: int) -> np.ndarray:
    return torch.quasirandom.SobolEngine(d, scramble=True, seed=seed).draw(count, dtype=torch.float64).numpy()


def propose(x: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The next x."""
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler

    torch.manual_seed(seed)  # BoTorch draws its restarts from the global generator
    model = model_of(x, y)
    criterion = qLogNoisyExpectedImprovement(
        model, torch.tensor(x), sampler=SobolQMCNormalSampler(torch.Size([128]), seed=seed), prune_baseline=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x_best, _ = optimize_acqf(criterion, cube(x.shape[1]), q=1, num_restarts=5, raw_samples=128)
    return x_best[0].numpy()


def best_mean(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The x of the best posterior mean: among those run, and anywhere."""
    from botorch.acquisition import PosteriorMean
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    model = model_of(x, y)
    with torch.no_grad():
        run = x[int(model.posterior(torch.tensor(x)).mean.argmax())]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x_best, _ = optimize_acqf(PosteriorMean(model), cube(x.shape[1]), q=1, num_restarts=5, raw_samples=256)
    return run, x_best[0].numpy()
