"""Settings of a fit, and the constants of the inference engine in one place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model.linalg import tensor
from paceline.traces import LearningRateRange, TaskCoordinates


@dataclass(frozen=True, slots=True)
class FitSettings:
    """The arguments of `TraceModel.fit` that a later fit needs again; see there."""

    inducing: int
    task_dims: int
    lr: "tuple[float, float] | LearningRateRange | None"
    anchor_noise: bool
    random_effect: bool
    summed_rate: bool = False
    end_share: float = 1.0
    coordinates: "TaskCoordinates | None" = None

    def __post_init__(self) -> None:
        if self.coordinates is not None and not self.task_dims:
            raise InputError(
                f"coordinates of tasks need an embedding beside them, got {self.task_dims} dimensions: "
                "pass 1, 2 or 3, since with 0 tasks share nothing"
            )
        if not 0 < self.end_share <= 1:
            raise InputError(
                f"end_share must lie in (0, 1], got {self.end_share!r}: 0.3 takes the last 30 % of each interval, 1 all"
            )
        if self.inducing < 1:
            raise InputError(f"inducing must be at least 1, got {self.inducing}: leave it out for the default")
        if not isinstance(self.task_dims, int) or self.task_dims < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"tasks must be None or the number of dimensions of the embedding, got {self.task_dims}: "
                "pass 0, 1, 2 or 3"
            )

    def coordinates_of(self, tasks: Sequence[str]) -> Float[Tensor, "tasks coordinates"]:
        """The known coordinates of some tasks; no columns if there are none."""
        return tensor(np.zeros((len(tasks), 0)) if self.coordinates is None else self.coordinates.rows(tasks))

    def with_coordinates(self, task: str, at: "Mapping[str, float] | None") -> "FitSettings":
        """The settings with the coordinates of one more task, if some are given."""
        if at is None:
            return self
        if self.coordinates is None:
            raise InputError(f"the tasks of this fit have no coordinates, got {dict(at)} for {task!r}: leave at= out")
        return replace(self, coordinates=self.coordinates.with_task(task, at))


@dataclass(frozen=True, slots=True)
class InferenceSettings:
    """Constants of the inference engine. docs/research.md, "The engine (issue 2)", has what was tried.

    Args:
        jitter: added to the diagonal of covariances, relative to the prior variance.
        noise_floor: least noise variance, in units of the squared range of values.
        iterations: most steps of L-BFGS in a first fit.
        update_iterations: in an update.
        new_task_iterations: in an update that brings a new task.
        failure_iterations: in a fit of the failure model.
        many_intervals: with more intervals, hyperparameters are first fitted to half as many.
        final_iterations: steps on all intervals after that.
        lbfgs_tolerance: relative improvement at which L-BFGS stops.
        site_steps: most natural-gradient steps per evaluation of the bound.
        site_tolerance: gain of the bound at which these steps stop, while hyperparameters move.
        final_tolerance: and in the last solve.
        shortest_step: length of a natural-gradient step below which the search stops.
        failure_mean: prior mean of the failure model's latent function: one interval in ten fails.
    """

    jitter: float = 1e-6
    noise_floor: float = 1e-8
    iterations: int = 60
    update_iterations: int = 3
    new_task_iterations: int = 20
    failure_iterations: int = 30
    many_intervals: int = 1_000
    final_iterations: int = 2
    lbfgs_tolerance: float = 1e-6
    site_steps: int = 100
    site_tolerance: float = 1e-4
    final_tolerance: float = 1e-6
    shortest_step: float = 1e-4
    failure_mean: float = -1.3


@dataclass(frozen=True, slots=True)
class HyperparameterPriors:
    """Priors of the kernel's hyperparameters: mean and deviation of each, on the scale that is optimised.

    docs/research.md, "The engine (issue 2)": priors take the place of box bounds. Each `start` is where L-BFGS begins.
    """

    mean_deviation: float = 2.0
    log_scale: tuple[float, float] = (0.4, 0.7)
    log_lengthscale: tuple[float, float] = (-0.7, 0.8)
    log_nugget: tuple[float, float] = (-1.6, 0.8)
    embedding: tuple[float, float] = (0.0, 1.0)
    embedding_with_coordinates: tuple[float, float] = (0.0, 0.3)
    log_coordinate_lengthscale: tuple[float, float] = (1.5, 0.7)
    scale_start: float = 0.3
    lengthscale_start: float = -0.7
    nugget_start: float = -1.5
    embedding_start: float = 0.5


@dataclass(frozen=True, slots=True)
class LocationSettings:
    """How the location of a new task is sampled. docs/research.md, "A family of tasks", under "A new task".

    Args:
        nearest: least distance that is assumed between tasks, in lengthscales of the kernel.
        rounds: of importance sampling; the first draws from the prior.
        widening: factor on the covariance of the locations so far, from which the next round draws.
        first_draws: from the prior; at their mean the new task's runs are first added to the model.
    """

    nearest: float = 0.1
    rounds: int = 3
    widening: float = 1.5
    first_draws: int = 32


INFERENCE = InferenceSettings()
PRIORS = HyperparameterPriors()
LOCATION = LocationSettings()
