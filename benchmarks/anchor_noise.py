"""Claim: marginalising the error of each interval's first value cuts the error of the predicted increment by 4 or more.

All observations of an interval are measured against its anchor, which is itself noisy. A likelihood that takes the
anchor as exact reads its error as slope. Runs drawn from the model with a linear link, with noise as large as the
increments; error of the predicted increment of held-out intervals, in units of the root mean square increment, where
the start value of the interval is known. Families are independent.
"""

import argparse

import numpy as np
import torch

from benchmarks._report import machine, mean_and_interval, print_results, result, table
from paceline import Trace, TraceModel
from paceline.problems import SyntheticFamily
from paceline.traces import Objective, Schedule


def error(model: TraceModel, family: SyntheticFamily, rng: np.random.Generator) -> float:
    """Root mean square error of the expected increment at (Y, x) in the range of the data, relative."""
    starts, rates = rng.uniform(0.1, 0.9, 200), rng.uniform(0.05, 0.95, 200)
    truth = np.array(
        [
            float(family.link(torch.tensor(family.latent(y, x)), torch.tensor(1.0)))
            for y, x in zip(starts, rates, strict=True)
        ]
    )
    scaling = model.encoder.scaling
    z = np.stack([scaling.to_scaled(starts), scaling.lr_range.to_unit(family.lr_range.from_unit(rates))], -1)
    mean, variance = model.posterior.marginal(torch.from_numpy(z))
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    f = mean[0, :, None] + variance[0, :, None].sqrt() * torch.from_numpy(nodes)
    length = torch.tensor(40 / scaling.interval)
    expected = (model.link(f[None], length) @ torch.from_numpy(weights / weights.sum())).numpy() * scaling.scale
    return float(np.sqrt(np.mean((expected - truth) ** 2) / np.mean(truth**2)))


def runs_of_one_interval(family: SyntheticFamily, rng: np.random.Generator, count: int, every: int) -> list[Trace]:
    """Short runs from everywhere, so that start values are not the ends of noisy intervals."""
    runs = []
    for i in range(count):
        run = family.run(rng.uniform(size=1), rng, length=40, every=every, start=float(rng.uniform()), name=str(i))
        runs.append(
            Trace(
                run.steps,
                run.values,
                Schedule(run.schedule.multipliers, [0, 40]),
                name=run.name,
                objective=Objective("max"),
            )
        )
    return runs


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=12)
    options = parser.parse_args()
    rows = []
    for noise in (0.02, 0.05, 0.1):
        errors = {True: list[float](), False: list[float]()}
        for seed in range(options.families):
            for anchor_noise, of_setting in errors.items():
                rng = np.random.default_rng([seed, int(1000 * noise)])
                family = SyntheticFamily.of("linear", rng, noise=noise, effect=0.0)
                runs = runs_of_one_interval(family, rng, 100, every=1)
                model = TraceModel.fit(runs, intervals=[0, 40], anchor_noise=anchor_noise, random_effect=False)
                of_setting.append(error(model, family, rng))
        with_it, without = mean_and_interval(np.array(errors[True])), mean_and_interval(np.array(errors[False]))
        ratio = without[0] / with_it[0]
        rows.append([noise, with_it[0], without[0], ratio])
        result(f"anchor_error_ratio_noise_{noise}", ratio)
    print(table(["noise", "error, anchor marginalised", "error, anchor exact", "ratio"], rows))
    print_results()


if __name__ == "__main__":
    main()
