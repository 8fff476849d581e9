"""Claim: the collapsed likelihood and the sites engine fit a trace model at least 200 times faster than a plain SVGP.

100 intervals with 39 observations each, drawn from the model. Time to an ELBO within 0.1 nat per interval of the best
that any method found, one thread, median of 5: ours from traces to fitted model; GPyTorch's SVGP on all observations
with Adam and with natural gradients, each at the best of several rates and batch sizes. Same likelihood on both sides
(anchor noise and random effect off), same kernel and inducing points; the ELBO is the same quantity. A peer that does
not get there in the cap is reported as a lower bound. Then a warm update of the full model with five new intervals.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from benchmarks._report import machine, print_results, result, table
from benchmarks._svgp import Observations, train
from paceline import Trace, TraceModel
from paceline.problems import SyntheticFamily

# (rate of Adam, rate of the natural gradient or None, batch size; 4000 is all observations)
Setting = tuple[float, float | None, int]
SETTINGS: dict[str, list[Setting]] = {
    "Adam": [(0.1, None, 4000), (0.03, None, 4000), (0.03, None, 500)],
    "NGD": [(0.03, 0.1, 4000), (0.03, 0.01, 4000), (0.03, 0.01, 500)],
}


def traces(link: str, seed: int = 0) -> list[Trace]:
    rng = np.random.default_rng(seed)
    family = SyntheticFamily.of(link, rng, effect=0.0)
    return [family.run(rng.uniform(size=10), rng, length=39, every=1, name=str(i)) for i in range(11)]


def plain_fit(runs: list[Trace], link: str) -> tuple[TraceModel, list[tuple[float, float]]]:
    curve: list[tuple[float, float]] = []
    began = time.perf_counter()
    model = TraceModel.fit(
        runs,
        link=link,
        inducing=100,
        anchor_noise=False,
        random_effect=False,
        callback=lambda bound: curve.append((time.perf_counter() - began, bound)),
    )
    curve.append((time.perf_counter() - began, model.bound))
    return model, curve


def reached(curve: list[tuple[float, float]], target: float, cap: float) -> float:
    return next((seconds for seconds, bound in curve if bound >= target), cap)


def compare(link: str, cap: float, repeats: int) -> None:
    runs = traces(link)[:10]
    plain_fit(runs, link)  # imports and caches
    model, ours = plain_fit(runs, link)
    data, slack = Observations.of(model), 0.1 * model.posterior.row_mean.shape[1]
    best = max(bound for _, bound in ours)
    explored: dict[str, list[tuple[Setting, list[tuple[float, float]]]]] = {}
    for name, settings in SETTINGS.items():
        explored[name] = []
        for setting in settings:
            curve = train(model, data, *setting, seconds=cap, enough=best, seed=0)
            best = max([best, *(bound for _, bound in curve)])
            explored[name].append((setting, curve))
    target, rows = best - slack, list[list[object]]()
    ours_seconds = statistics.median(reached(plain_fit(runs, link)[1], target, np.inf) for _ in range(repeats))
    peers: list[float] = []
    for name, tried in explored.items():
        seconds, setting = min((reached(curve, target, cap), setting) for setting, curve in tried)
        times = [seconds]
        while seconds < cap and len(times) < repeats:  # where it did not get there, running it again tells nothing new
            curve = train(model, data, *setting, seconds=cap, enough=target, seed=len(times))
            times.append(reached(curve, target, cap))
        short = best - max((bound for _, curve in tried for _, bound in curve), default=-np.inf)
        peers.append(statistics.median(times))
        at_cap = ">= " if peers[-1] >= cap else ""
        rows.append(
            [name, f"{at_cap}{peers[-1]:.4g}", f"{at_cap}{peers[-1] / ours_seconds:.4g}", len(times), short, setting]
        )
    print(f"\n{link} link: best ELBO {best:.1f}, seconds to within {slack:.0f} nat of it")
    header = ["method", "seconds", "times ours", "repeats", "nats short at the end", "best (Adam, NGD, batch)"]
    print(table(header, [["ours", f"{ours_seconds:.4g}", "1", repeats, best - model.bound, ""], *rows]))
    print(f"ours to convergence: {statistics.median(plain_fit(runs, link)[1][-1][0] for _ in range(repeats)):.3f} s")
    result(f"fit_speedup_{link}", min(peers) / ours_seconds)


def warm_update(link: str, repeats: int) -> None:
    runs = traces(link)
    cold, warm = [], []
    for _ in range(repeats):
        began = time.perf_counter()
        model = TraceModel.fit(runs[:10], link=link)
        cold.append(time.perf_counter() - began)
        began = time.perf_counter()
        updated = model.update([runs[10].head(5 * 39 + 1)])
        warm.append(time.perf_counter() - began)
        assert len(updated.segments) == len(model.segments) + 5
    result(f"cold_fit_ms_{link}", 1e3 * statistics.median(cold))
    result(f"warm_update_ms_{link}", 1e3 * statistics.median(warm))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cap", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    print(machine())
    for link in ("linear", "exponential"):
        warm_update(link, options.repeats)
    for link in ("linear", "exponential"):
        compare(link, options.cap, options.repeats)
    print_results()


if __name__ == "__main__":
    main()
