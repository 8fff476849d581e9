"""Claim: forecast bands hold what they say, on data drawn from the model; and what they hold on real curves.

Simulated: for each link, families of runs whose latent functions are drawn anew. The model is fitted to some runs and
forecasts others: each interval from the run up to there (held-out intervals), and the whole run from nothing
(held-out traces). Coverage is averaged within a family, and its 95 % interval is over families, which are independent.

Real: AlexNet and DeBERTa runs (../shared/data), the second half of each curve forecast from its first.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from benchmarks._report import mean_and_interval, print_results, result, table
from paceline import Forecast, Trace, TraceModel
from paceline.problems import DrawnFamily

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
        family = DrawnFamily.of(link, rng)
        runs = [family.run(rng.uniform(size=intervals), rng, name=str(i)) for i in range(train + test)]
        model = TraceModel.fit(runs[:train], link=link)
        hits: dict[str, list[list[float]]] = {"intervals": [], "traces": []}
        for run in runs[train:]:
            pieces = [
                [inside(f, v, level).mean() for level in LEVELS]
                for f, v in interval_forecasts(model, run, len(run.steps) // intervals)
            ]
            hits["intervals"].append(np.mean(pieces, 0).tolist())
            whole = model.forecast(run.schedule, run.steps[1:], draws=400)
            hits["traces"].append([float(inside(whole, run.values[1:], level).mean()) for level in LEVELS])
        for kind, values in hits.items():
            covered[kind].append(np.mean(values, 0).tolist())
    return {kind: np.array(values) for kind, values in covered.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=24)
    options = parser.parse_args()
    rows = []
    for link in ("linear", "exponential", "power", "hyperbolic", "signed"):
        coverage = simulated(link, options.families, train=10, test=5, intervals=10)
        for kind, values in coverage.items():
            (half, *_), (ninety, low, high) = (mean_and_interval(values[:, i]) for i in range(2))
            rows.append([link, kind, 5 * options.families, half, ninety, low, high])
            result(f"coverage90_{link}_{kind}", ninety)
    print(table(["link", "held-out", "traces", "50 % band", "90 % band", "95 % low", "95 % high"], rows))
    print_results()


if __name__ == "__main__":
    main()
