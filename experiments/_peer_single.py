"""Peers that are no tuners: one run each, as a torch user writes it; with more budget, their main knob on a grid.

Each function below is the whole of the user's code for a method, and its lines are counted. Where a package has a
variant of the problem's own optimiser (SGD on the quadratics, AdamW on the networks), that one is used.
"""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
from dadaptation import DAdaptAdam, DAdaptSGD
from prodigyopt import Prodigy
from schedulefree import AdamWScheduleFree, SGDScheduleFree
from torch.optim.lr_scheduler import CosineAnnealingLR, ReduceLROnPlateau

from benchmarks._plain import plain
from benchmarks._problems import Problem
from benchmarks.single_run import update
from experiments._peer_knobs import RATES

OBSERVED = 100  # times that ReduceLROnPlateau sees the loss: the epochs that its default patience of 10 is meant for
WARMUP = 0.05  # of the run, for Schedule-Free, whose authors recommend some


def schedule_free(problem: Problem, seed: int, lr: float | None) -> float:
    """Schedule-Free with a warm-up; its default rate where none is given; the loss of its evaluation weights."""
    run = plain(problem, seed)
    options = {"warmup_steps": int(WARMUP * problem.steps)} | ({"lr": lr} if lr else {})
    if problem.network:
        decay = run.optimizer().param_groups[0]["weight_decay"]
        optimizer = AdamWScheduleFree(run.model.parameters(), weight_decay=decay, **options)
    else:
        optimizer = SGDScheduleFree(run.model.parameters(), **options)
    optimizer.train()
    for _ in range(problem.steps):
        update(run, optimizer, next(run.batches))
    optimizer.eval()
    return run.evaluate(run.model)


def prodigy(problem: Problem, seed: int, d_coef: float) -> float:
    """Prodigy at rate 1 with the cosine schedule and the knob that its authors recommend."""
    run = plain(problem, seed)
    decay = run.optimizer().param_groups[0]["weight_decay"]
    optimizer = Prodigy(run.model.parameters(), lr=1.0, weight_decay=decay, d_coef=d_coef)
    scheduler = CosineAnnealingLR(optimizer, problem.steps)
    for _ in range(problem.steps):
        update(run, optimizer, next(run.batches))
        scheduler.step()
    return run.evaluate(run.model)


def d_adaptation(problem: Problem, seed: int, lr: float) -> float:
    """D-Adaptation with a cosine schedule; `lr` scales its estimate and 1 is its default."""
    run = plain(problem, seed)
    decay = run.optimizer().param_groups[0]["weight_decay"]
    if problem.network:
        optimizer = DAdaptAdam(run.model.parameters(), lr=lr, weight_decay=decay, decouple=True)
    else:
        optimizer = DAdaptSGD(run.model.parameters(), lr=lr)
    scheduler = CosineAnnealingLR(optimizer, problem.steps)
    for _ in range(problem.steps):
        update(run, optimizer, next(run.batches))
        scheduler.step()
    return run.evaluate(run.model)


def plateau(problem: Problem, seed: int, lr: float) -> float:
    """The problem's own optimiser under ReduceLROnPlateau with its defaults, which sees the loss that counts."""
    run = plain(problem, seed)
    optimizer = run.optimizer()
    optimizer.param_groups[0]["lr"] = lr
    scheduler = ReduceLROnPlateau(optimizer)
    for step in range(1, problem.steps + 1):
        update(run, optimizer, next(run.batches))
        if step % (problem.steps // OBSERVED) == 0:
            scheduler.step(run.evaluate(run.model))
    return run.evaluate(run.model)


METHODS: dict[str, Callable[[Problem, int, float], float]] = {
    "Schedule-Free": schedule_free,
    "Prodigy": prodigy,
    "D-Adaptation": d_adaptation,
    "ReduceLROnPlateau": plateau,
}


def run_once(problem: Problem, unit: str, seed: int) -> dict[str, float | None]:
    """One run; its final loss, None where it diverged."""
    method, text = unit.rsplit(" ", 1)
    knob = None if text == "default" else float(text)
    if method in RATES and knob is not None:
        low, high = problem.bounds(seed)
        knob = float(low * (high / low) ** knob)
    with redirect_stdout(StringIO()), np.errstate(all="ignore"):  # they print their settings
        value = METHODS[method](problem, seed, knob)  # pyright: ignore[reportArgumentType]
    return {"raw": value if np.isfinite(value) else None, "cost": 1.0, "knob": knob}
