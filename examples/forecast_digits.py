"""Fit the trace model to a few real runs, forecast schedules it has not seen, and look at the result.

Trains a small network on scikit-learn's digits twelve times with random piecewise-constant rates (a few seconds), fits
the model to ten of the runs, and forecasts the other two: from nothing, and from half-way.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from paceline import LearningRateRange, Schedule, Trace, TraceModel
from paceline.model import Forecast
from paceline.problems import train_digits

STEPS, INTERVALS, BOUNDS = 600, 6, LearningRateRange(1e-4, 3e-2)


def random_schedule(rng: np.random.Generator) -> Schedule:
    return Schedule(BOUNDS.from_unit(rng.uniform(size=INTERVALS)), np.linspace(0, STEPS, INTERVALS + 1))


def report(run: Trace, forecasts: list[tuple[int, Forecast]]) -> None:
    print(f"\nrun {run.name}: rates " + ", ".join(f"{rate:.1e}" for rate in run.schedule.multipliers))
    print(f"{'forecast from':>14}  {'at step':>7}  {'median':>7}  {'90 % band':>17}  {'what happened':>13}")
    for begun, forecast in forecasts:
        low, high = forecast.band(0.9)
        for i in (len(forecast.steps) // 2, len(forecast.steps) - 1):
            step = int(forecast.steps[i])
            truth = run.values[np.searchsorted(run.steps, step)]
            band = f"{low[i]:.3f} to {high[i]:.3f}"
            print(f"{f'step {begun}':>14}  {step:>7}  {forecast.median[i]:>7.3f}  {band:>17}  {truth:>13.3f}")


def picture(runs: list[Trace], forecasts: list[list[tuple[int, Forecast]]], path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        2, len(runs), figsize=(5 * len(runs), 5.2), sharex=True, height_ratios=[3, 1], squeeze=False
    )
    for column, (run, found) in enumerate(zip(runs, forecasts, strict=True)):
        top, bottom = axes[:, column]
        for (begun, forecast), colour in zip(found, ("tab:blue", "tab:orange"), strict=True):
            low, high = forecast.band(0.9)
            top.fill_between(forecast.steps, low, high, color=colour, alpha=0.2, lw=0)
            top.plot(forecast.steps, forecast.median, color=colour, label=f"forecast from step {begun}, 90 % band")
        top.plot(run.steps, run.values, color="black", lw=1.2, label="what happened")
        top.set(yscale="log", title=f"run {run.name}, never seen by the model")
        bottom.plot(np.arange(STEPS), run.schedule(np.arange(STEPS)), color="tab:green", drawstyle="steps-post")
        bottom.set(yscale="log", xlabel="step", ylim=(BOUNDS.low / 1.5, BOUNDS.high * 1.5))
    axes[0, 0].set_ylabel("validation loss")
    axes[1, 0].set_ylabel("learning rate")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture", type=Path, default=Path("forecast_digits.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)  # the network is too small to share out
    rng = np.random.default_rng(options.seed)
    began = time.perf_counter()
    runs = [train_digits(random_schedule(rng), seed=i, name=str(i)) for i in range(12)]
    print(f"trained 12 runs of {STEPS} steps with random rates in {time.perf_counter() - began:.1f} s")
    began = time.perf_counter()
    model = TraceModel.fit(runs[:10], link="exponential", lr=BOUNDS)
    observations = sum(s.moments.n for s in model.segments)
    print(f"fitted {len(model.segments)} intervals, {observations} observations in {time.perf_counter() - began:.1f} s")
    shown = []
    for run in runs[10:]:
        half = run.head(len(run.steps) // 2 + 1)
        whole = model.forecast(run.schedule, run.steps[1:])
        rest = model.forecast(run.schedule, run.steps[len(half.steps) :], start=half)
        shown.append([(0, whole), (half.last_step, rest)])
        report(run, shown[-1])
    rates = BOUNDS.from_unit(np.linspace(0, 1, 61))
    half = runs[11].head(len(runs[11].steps) // 2 + 1)
    cautious, bold = (rates[int(np.argmin(model.quantile(alpha, rates, start=half)))] for alpha in (0.1, 0.9))
    print(
        f"\nfrom step {half.last_step} of run 11 it would try a rate of {cautious:.1e} (cautious) or {bold:.1e} (bold)"
    )
    picture(runs[10:], shown, options.picture)
    print(f"picture: {options.picture}")


if __name__ == "__main__":
    main()
