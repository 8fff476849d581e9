"""A family of noisy quadratics: spectra and noises differ, the best schedule of each is known."""

import numpy as np

from paceline import Schedule, Trace
from paceline.problems import Quadratic, QuadraticTraining
from paceline.traces import LearningRateRange, Objective

STEPS, INTERVALS, EVERY = 300, 5, 5
BOUNDS = LearningRateRange(1e-2, 1.9)
OBJECTIVE = Objective(transform="log")


def family(tasks: int) -> dict[str, Quadratic]:
    """Noise from 0.25 to 2, spectra from flat to steep, not in the same order; the best rates lie inside the bounds."""
    noises = np.geomspace(0.25, 2.0, tasks)
    powers = np.roll(np.linspace(0.6, 1.0, tasks), tasks // 2)
    return {
        f"noise {noise:.2g}, power {power:.2g}": Quadratic(float(noise), 100, float(power))
        for noise, power in zip(noises, powers, strict=True)
    }


def observed(problem: Quadratic, schedule: Schedule, seed: int, *, task: str, name: str) -> Trace:
    """One run: the loss of its raw weights, noisy as it is."""
    training = QuadraticTraining(problem, seed, every=EVERY)
    observations = [(0, problem.loss(np.ones(problem.dims)))]
    observations += [(step, values["raw"]) for step, values in training.advance(schedule, schedule.steps)]
    steps, values = np.array(observations).T
    return Trace(steps.astype(int), values, schedule, task=task, name=name, objective=OBJECTIVE)
