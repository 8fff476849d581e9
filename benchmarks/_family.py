"""A family of noisy quadratics: spectra and noises differ, the best schedule of each is known."""

import numpy as np

from paceline import Schedule, Trace
from paceline.problems import Quadratic
from paceline.problems.quadratic import QuadraticTraining
from paceline.traces import LearningRateRange, Objective

STEPS, INTERVALS, EVERY = 300, 5, 5
BOUNDS = LearningRateRange(3e-3, 1.5)
OBJECTIVE = Objective(transform="log")


def family(tasks: int) -> dict[str, Quadratic]:
    """Noise from 0.05 to 1, spectra from flat to steep, not in the same order."""
    noises = np.geomspace(0.05, 1.0, tasks)
    powers = np.roll(np.linspace(0.6, 1.4, tasks), tasks // 2)
    return {
        f"noise {noise:.2g}, power {power:.2g}": Quadratic(float(noise), 100, float(power))
        for noise, power in zip(noises, powers, strict=True)
    }


def observed(problem: Quadratic, schedule: Schedule, seed: int, *, task: str, name: str) -> Trace:
    """One run: the loss of its raw weights, noisy as it is."""
    training = QuadraticTraining(problem, seed, every=EVERY)
    seen = [(0, problem.loss(np.ones(problem.dims)))]
    seen += [(step, values["raw"]) for step, values in training.advance(schedule, schedule.steps)]
    steps, values = np.array(seen).T
    return Trace(steps.astype(int), values, schedule, task=task, name=name, objective=OBJECTIVE)
