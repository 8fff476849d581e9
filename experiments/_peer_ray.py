"""Ray Tune's PBT and PB2 with the same `Training` inside a class Trainable.

Five trials, twenty rounds; quantiles, factors and resampling as documented. The population goes in step (`synch`), so
that a result does not hang on which trial came first. One CPU: trials take turns on one actor. A checkpoint holds the
optimiser with its donor's rate; as `advance` is handed the rate of the trial's own configuration at every step, what is
restored cannot undo what was perturbed, and `run_population` compares the rates that were used with those asked for.
"""

import json
import logging
import os
import random
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from ray import tune
from ray.tune.schedulers import PopulationBasedTraining
from ray.tune.schedulers.pb2 import PB2

from benchmarks._problems import PROBLEMS, Problem
from paceline.errors import TrainingError
from paceline.traces import Schedule

ROUNDS, TRIALS = 20, 5
WORST = 10  # times the first loss: what a trial reports that diverged, since neither scheduler can rank a NaN


class Trial(tune.Trainable):
    """One run that trains a round at a time at the rate of its configuration; this, too, is code of the user's."""

    def setup(self, config: dict[str, Any]) -> None:
        self.problem = PROBLEMS[config["problem"]]
        self.training, self.first = self.problem.make(config["seed"]), np.inf
        torch.set_num_threads(1)

    def step(self) -> dict[str, Any]:
        rate = self.config["lr"] if "lr" in self.config else 10 ** self.config["log10_lr"]
        schedule = Schedule.constant(rate, self.problem.steps)
        stop = self.training.steps_done + self.problem.steps // ROUNDS
        losses = [value["raw"] for _, value in self.training.advance(schedule, stop)]
        self.first = min(self.first, losses[0])
        worst = WORST * self.first
        return {"loss": losses[-1] if losses[-1] < worst else worst, "at": stop, "rate": _used(self.training, rate)}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        torch.save((self.trial_id, self.first, self.training.state_dict()), Path(checkpoint_dir, "state.pt"))

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        donor, self.first, state = torch.load(Path(checkpoint_dir, "state.pt"))
        self.training.load_state_dict(state)
        if donor != self.trial_id:  # a clone sees other batches than its donor
            self.training.reseed(zlib.crc32(f"{self.trial_id.split('_')[-1]} {state['done']}".encode()))

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)  # the actor goes to another trial, which may have no checkpoint yet
        return True


def pbt(problem: Problem, seed: int, folder: str, callbacks: Sequence[tune.Callback]) -> tune.ResultGrid:
    """Population based training over a constant rate, drawn and resampled log-uniformly within the bounds."""
    low, high = problem.bounds(seed)
    scheduler = PopulationBasedTraining(
        time_attr="training_iteration",
        perturbation_interval=1,
        hyperparam_mutations={"lr": tune.loguniform(low, high)},
        custom_explore_fn=lambda config: {**config, "lr": min(max(config["lr"], low), high)},
        synch=True,
    )
    return population(problem, seed, scheduler, folder, callbacks)


def pb2(problem: Problem, seed: int, folder: str, callbacks: Sequence[tune.Callback]) -> tune.ResultGrid:
    """Population based bandits over the logarithm of the rate, since its model is on a linear scale."""
    scheduler = PB2(
        time_attr="training_iteration",
        perturbation_interval=1,
        hyperparam_bounds={"log10_lr": [float(np.log10(rate)) for rate in problem.bounds(seed)]},
        synch=True,
    )
    return population(problem, seed, scheduler, folder, callbacks)


def population(
    problem: Problem,
    seed: int,
    scheduler: PopulationBasedTraining,
    folder: str,
    callbacks: Sequence[tune.Callback],
) -> tune.ResultGrid:
    """Five trials under a scheduler."""
    tuner = tune.Tuner(
        tune.with_resources(Trial, {"cpu": 1}),
        param_space={"problem": problem.name, "seed": seed},
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", scheduler=scheduler, num_samples=TRIALS, reuse_actors=True
        ),
        run_config=tune.RunConfig(
            storage_path=folder,
            stop={"training_iteration": ROUNDS},
            callbacks=list(callbacks),
            verbose=0,
        ),
    )
    return tuner.fit()


class ResultLog(tune.Callback):
    """Every result of every trial."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict[str, Any], **_: Any) -> None:
        self.results.append({"round": result["training_iteration"], "at": result["at"], "rate": result["rate"]})


def run_population(problem: Problem, seed: int, method: str) -> dict[str, Any]:
    """The final loss of the best trial, the steps that all took, and how many exploits used the rate asked for."""
    _start()
    random.seed(seed)  # the schedulers draw from the global generators
    np.random.seed(seed)  # noqa: NPY002
    log = ResultLog()
    with tempfile.TemporaryDirectory(prefix="peers-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = {"PBT": pbt, "PB2": pb2}[method](problem, seed, folder, [log])
        lines = [line for path in Path(folder).rglob("pbt_global.txt") for line in path.read_text().splitlines()]
    if grid.errors or len(grid) != TRIALS or any(result.metrics["at"] != problem.steps for result in grid):
        raise TrainingError(f"expected {TRIALS} whole trials of {method} on {problem.name}, got {grid.errors or grid}")
    exploits = [json.loads(line) for line in lines]
    return {
        "raw": min(result.metrics["loss"] for result in grid),
        "cost": len(log.results) / ROUNDS,
        "exploits": len(exploits),
        "obeyed": sum(_obeyed(exploit, log.results) for exploit in exploits),
    }


def _obeyed(exploit: list[Any], results: list[dict[str, Any]]) -> bool:
    """Whether a trial trained at the rate that an exploit asked for, in the round after it."""
    _, _, target, donor, _, new = exploit
    after = max(target, donor)  # the trial that arrived last is logged with the round before
    rate = new["lr"] if "lr" in new else 10 ** new["log10_lr"]
    return any(r["round"] == after + 1 and np.isclose(r["rate"], rate, rtol=1e-6) for r in results)


def _used(training: Any, rate: float) -> float:
    """The rate in the optimiser after training, where there is one."""
    return training.optimizer.param_groups[0]["lr"] if hasattr(training, "optimizer") else rate


def _start() -> None:
    if not ray.is_initialized():
        os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
        ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        logging.getLogger("ray.tune").setLevel(logging.ERROR)
