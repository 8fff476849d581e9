"""Claim: forecast bands hold what they say, on data drawn from the model; and what they hold on real curves.

Simulated: for each link, families of runs whose latent functions are drawn anew. The model is fitted to some runs and
forecasts others: each interval from the run up to there (held-out intervals), and the whole run from nothing
(held-out traces). Coverage is averaged within a family, and its 95 % interval is over families, which are independent.

Real: AlexNet and DeBERTa runs of a random search, the second half of each accuracy curve forecast from its first, by a
model of 60 other runs. Batch size, momentum and the rest vary between runs and are unknown to the model; the shape of
the schedule (straight lines up to the peak and down to zero) is what the data's notes suggest, not what they state.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks._data import search_runs
from benchmarks._report import machine, mean_and_interval, print_results, result, table
from paceline import Objective, Trace, TraceModel
from paceline.model import Forecast
from paceline.problems import SyntheticFamily

LEVELS = (0.5, 0.9)


def inside(forecast: Forecast, values: np.ndarray, coverage: float) -> np.ndarray:
    low, high = forecast.band(coverage)
    return (values >= low) & (values <= high)


def interval_forecasts(model: TraceModel, trace: Trace, per: int) -> Iterator[tuple[Forecast, np.ndarray]]:
    for end in range(1, len(trace.steps) - 1, per):
        ahead = trace.steps[end : end + per]
        yield model.forecast(trace.schedule, ahead, start=trace.head(end), draws=400), trace.values[end : end + per]


def simulated(link: str, families: int, train: int, test: int, intervals: int) -> dict[str, np.ndarray]:
    covered: dict[str, list[list[float]]] = {"intervals": [], "traces": []}
    for seed in range(families):
        rng = np.random.default_rng([seed, sum(map(ord, link))])
        family = SyntheticFamily.of(link, rng)
        runs = [family.run(rng.uniform(size=intervals), rng, name=str(i)) for i in range(train + test)]
        model = TraceModel.fit(runs[:train], link=link)
        hits: dict[str, list[list[float]]] = {"intervals": [], "traces": []}
        for run in runs[train:]:
            pieces = [
                [inside(f, v, level).mean() for level in LEVELS]
                for f, v in interval_forecasts(model, run, len(run.steps) // intervals)
            ]
            hits["intervals"].append(np.mean(pieces, 0).tolist())
            forecast = model.forecast(run.schedule, run.steps[1:], draws=400)
            hits["traces"].append([float(inside(forecast, run.values[1:], level).mean()) for level in LEVELS])
        for kind, values in hits.items():
            covered[kind].append(np.mean(values, 0).tolist())
    return {kind: np.array(values) for kind, values in covered.items()}


def alexnet_runs() -> list[Trace]:
    """Top-1 validation accuracy per epoch; the rate rises to its peak epoch and falls to zero in straight lines."""
    runs = []
    for i, record in enumerate(search_runs("alexnet")):
        curve, peak, epochs = record["learning_curve"], record["lr_peak_epoch"], record["epochs"]
        if record["nan_train_loss"] or len(curve) < epochs - 1:
            continue
        epoch = np.array([row["epoch"] for row in curve], dtype=int)
        rise, fall = (epoch + 1) / (peak + 1), (epochs - epoch) / (epochs - peak)
        rates = record["lr"] * np.minimum(np.minimum(rise, fall), 1.0)
        accuracy = [row["top_1"] for row in curve]
        runs.append(Trace.from_table(epoch, rates, accuracy, name=str(i), objective=Objective("max")))
    return runs


def deberta_runs() -> list[Trace]:
    """Accuracy every 1,000 steps; linear warm-up, then linear decay to zero. The step counts thousands."""
    runs = []
    for i, record in enumerate(search_runs("deberta-base")):
        curve, total, warmup = record["learning_curves"]["matched"], record["total_model_steps"], record["warmup_steps"]
        step, accuracy = np.array(curve).T
        keep = (step % 1000 == 0) & (step < total)
        if keep.sum() < 12:
            continue
        step, accuracy = step[keep], accuracy[keep]
        rates = record["learning_rate"] * np.minimum(step / max(warmup, 1), (total - step) / max(total - warmup, 1))
        runs.append(
            Trace.from_table((step / 1000).astype(int), rates, accuracy, name=str(i), objective=Objective("max"))
        )
    return runs


def power_law(steps: np.ndarray, values: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """c - a t^-b fitted to the first half by least squares, and followed."""
    from scipy.optimize import curve_fit

    def law(t: np.ndarray, c: float, log_a: float, b: float) -> np.ndarray:
        return c - np.exp(log_a) * (t + 1.0) ** -b

    guess = (float(values.max()), float(np.log(max(np.ptp(values), 1e-3))), 0.5)
    bounds = ([-1.0, -12.0, 0.01], [2.0, 3.0, 5.0])
    coefficients, _ = curve_fit(
        law, steps.astype(float), values, p0=np.clip(guess, *bounds), bounds=bounds, max_nfev=5_000
    )
    return law(ahead.astype(float), *coefficients)


def real(name: str, runs: list[Trace], link: str, order: int, fitted: int, tested: int) -> list[object]:
    """Fit to whole runs, then forecast the second half of others from their first."""
    order_of = np.random.default_rng(0).permutation(len(runs))
    shuffled = [runs[i] for i in order_of]
    longest = max(run.last_step for run in runs)
    model = TraceModel.fit(shuffled[:fitted], intervals=np.arange(0, longest + 5, 5), link=link, order=order)
    rows: list[list[float]] = []
    for run in shuffled[fitted : fitted + tested]:
        half = len(run.steps) // 2
        start, steps, truth = run.head(half), run.steps[half:], run.values[half:]
        updated = model.update([start])
        forecast = updated.forecast(run.schedule, steps, start=start, draws=400)
        last = np.full(len(truth), start.last_value)
        law = power_law(start.steps, start.values, steps)
        misses = [np.abs(guess - truth).mean() for guess in (forecast.median, last, law)]
        finals = [abs(guess[-1] - truth[-1]) for guess in (forecast.median, last, law)]
        rows.append([*misses, *finals, *(inside(forecast, truth, level).mean() for level in LEVELS)])
    middle = np.mean(rows, 0)
    result(f"real_{name}_{link}{order}_mae", float(middle[0]))
    result(f"real_{name}_{link}{order}_coverage90", float(middle[7]))
    return [f"{name}, {link} q={order}", len(rows), *(float(x) for x in middle)]


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=40)
    parser.add_argument("--tested", type=int, default=60, help="real runs forecast")
    options = parser.parse_args()
    rows = []
    for link in ("linear", "exponential", "power", "hyperbolic", "signed"):
        coverage = simulated(link, options.families, train=10, test=5, intervals=10)
        for kind, values in coverage.items():
            (half, *_), (ninety, low, high) = (mean_and_interval(values[:, i]) for i in range(2))
            rows.append([link, kind, options.families, 5 * options.families, half, ninety, low, high])
            result(f"coverage90_{link}_{kind}", ninety)
    header = ["link", "held-out", "families", "traces", "50 % band", "90 % band", "95 % low", "95 % high"]
    print(table(header, rows))
    print("\nreal runs: mean absolute error over the second half and at its end, and what the bands hold")
    rows = [
        real(name, runs, link, order, fitted=60, tested=options.tested)
        for name, runs in (("alexnet", alexnet_runs()), ("deberta", deberta_runs()))
        for link, order in (("linear", 1), ("signed", 1), ("signed", 2))
    ]
    header = [
        "data",
        "runs",
        "ours",
        "last value",
        "power law",
        "end: ours",
        "end: last",
        "end: law",
        "50 % band",
        "90 % band",
    ]
    print(table(header, rows))
    print_results()


if __name__ == "__main__":
    main()
