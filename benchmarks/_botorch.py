"""Independent Bayesian optimisation of each task with BoTorch, as its documentation advises for noisy values.

`SingleTaskGP` with its default priors and standardised outcomes on x in the unit cube, a Sobol start, then
`qLogNoisyExpectedImprovement` with `prune_baseline`. `benchmarks.data_size` optimises with several fidelities as the
tutorial on discrete ones does: `SingleTaskMultiFidelityGP`, then `qMultiFidelityKnowledgeGradient` per cost. Only these
two need BoTorch: `pip install -e '.[peers]'`.
"""

import warnings
from collections.abc import Mapping

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


COST_BASE = 16.0  # a run at fidelity 1 costs so many times one at fidelity 0
FANTASIES = 16


def fidelity_model(x: np.ndarray, fidelities: np.ndarray, y: np.ndarray):
    """The fitted model of -y over x and, last, the fidelity in [0, 1]."""
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskMultiFidelityGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    inputs, d = torch.tensor(np.column_stack([x, fidelities])), x.shape[1]
    model = SingleTaskMultiFidelityGP(inputs, -torch.tensor(y)[:, None], data_fidelities=[d])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def propose_at_fidelity(
    x: np.ndarray, fidelities: np.ndarray, y: np.ndarray, choices: Mapping[str, float], seed: int
) -> tuple[str, np.ndarray]:
    """The next x and at which of the fidelities that it is run, by what it teaches about fidelity 1 for its cost."""
    from botorch.acquisition.cost_aware import InverseCostWeightedUtility
    from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
    from botorch.acquisition.utils import project_to_target_fidelity
    from botorch.models.deterministic import GenericDeterministicModel
    from botorch.optim import optimize_acqf_mixed

    torch.manual_seed(seed)
    model, d = fidelity_model(x, fidelities, y), x.shape[1]
    cost = GenericDeterministicModel(lambda z: COST_BASE ** (z[..., -1:] - 1))
    criterion = qMultiFidelityKnowledgeGradient(
        model,
        num_fantasies=FANTASIES,
        current_value=_best_mean_at_full_fidelity(model, d)[1],
        cost_aware_utility=InverseCostWeightedUtility(cost_model=cost),
        project=lambda z: project_to_target_fidelity(z, target_fidelities={d: 1.0}, d=d + 1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best, _ = optimize_acqf_mixed(
            criterion,
            cube(d + 1),
            q=1,
            fixed_features_list=[{d: value} for value in choices.values()],
            num_restarts=2,
            raw_samples=32,
            options={"maxiter": 40},
        )
    nearest = min(choices, key=lambda name: abs(choices[name] - float(best[0, d])))
    return nearest, best[0, :d].numpy()


def best_at_full_fidelity(x: np.ndarray, fidelities: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The x of the best posterior mean at fidelity 1."""
    torch.manual_seed(seed)
    return _best_mean_at_full_fidelity(fidelity_model(x, fidelities, y), x.shape[1])[0].numpy()


def _best_mean_at_full_fidelity(model, d: int) -> tuple[torch.Tensor, torch.Tensor]:
    from botorch.acquisition import PosteriorMean
    from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
    from botorch.optim import optimize_acqf

    mean = FixedFeatureAcquisitionFunction(PosteriorMean(model), d=d + 1, columns=[d], values=[1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best, value = optimize_acqf(mean, cube(d), q=1, num_restarts=5, raw_samples=256)
    return best[0], value
