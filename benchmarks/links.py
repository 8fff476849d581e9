"""Claim: links with one and two latents hold their 90 % bands on runs drawn from them.

With three latents, the bands of whole runs are too narrow (30 intervals).

Drawn: for each link, a family of runs with latent functions of its own. The model with that link is fitted to some runs
and forecasts each interval of others from the run up to there, and whole runs from nothing. Beside it the same errors
of the linear link. Each unit of error is the noise of one observation. Rows that are there are not measured again.

Real: accuracies of AlexNet runs of a random search ($PACELINE_DATA, docs/experiments.md), the second half of each curve
forecast from its first, by a model of other runs, as in `benchmarks.calibration`.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks._report import machine, print_results, read_rows, result, table
from benchmarks.calibration import alexnet_runs, inside, interval_forecasts
from paceline import Trace, TraceModel
from paceline.model import LINKS, Forecast
from paceline.problems import SyntheticFamily

ROWS = Path(__file__).parent / "results" / "links.jsonl"
NOISE, INTERVALS, EVERY_EPOCHS = 0.01, 5, 5


def errors(pairs: list[tuple[Forecast, np.ndarray]]) -> tuple[float, float]:
    """Mean absolute error of the medians, and the share of values inside the 90 % bands."""
    misses = [np.abs(forecast.median - values).mean() for forecast, values in pairs]
    return float(np.mean(misses)), float(np.mean([inside(forecast, values, 0.9).mean() for forecast, values in pairs]))


def forecasts(model: TraceModel, runs: list[Trace]) -> list[list[tuple[Forecast, np.ndarray]]]:
    """Of each interval from the run up to there, and of whole runs."""
    per = len(runs[0].steps) // INTERVALS
    intervals = [pair for run in runs for pair in interval_forecasts(model, run, per)]
    return [intervals, [(model.forecast(run.schedule, run.steps[1:], draws=200), run.values[1:]) for run in runs]]


def drawn(link: str, families: int, fitted: int, tested: int) -> list[float]:
    """Error and coverage of intervals, of whole runs, the errors of the linear link, and seconds of a fit."""
    rows = []
    for seed in range(families):
        rng = np.random.default_rng([seed, 2015])
        family = SyntheticFamily.of(link, rng, noise=NOISE)
        runs = [family.run(rng.uniform(size=INTERVALS), rng, name=str(i)) for i in range(fitted + tested)]
        began = time.process_time()
        model = TraceModel.fit(runs[:fitted], link=link)
        seconds = time.process_time() - began
        plain = TraceModel.fit(runs[:fitted], link="linear")
        own, other = ([errors(pairs) for pairs in forecasts(m, runs[fitted:])] for m in (model, plain))
        linear = [error / NOISE for error, _ in other]
        rows.append([own[0][0] / NOISE, own[0][1], own[1][0] / NOISE, own[1][1], *linear, seconds])
    return np.mean(rows, 0).tolist()


def real(link: str, runs: list[Trace], fitted: int, tested: int) -> list[float]:
    """Error and coverage over the second half of curves."""
    order = np.random.default_rng(0).permutation(len(runs))[: fitted + tested]
    chosen, points = [runs[i] for i in order], np.arange(0, max(run.last_step for run in runs) + 5, EVERY_EPOCHS)
    model, pairs = TraceModel.fit(chosen[:fitted], intervals=points, link=link), []
    for run in chosen[fitted:]:
        half = len(run.steps) // 2
        forecast = model.forecast(run.schedule, run.steps[half:], start=run.head(half), draws=200)
        pairs.append((forecast, run.values[half:]))
    return list(errors(pairs))


def measure(link: str, curves: list[Trace], options: argparse.Namespace) -> dict[str, object]:
    """All figures of a link, and how many runs they are of."""
    own = drawn(link, options.families, options.fitted, options.tested)
    names = ("interval_error", "interval_coverage90", "run_error", "run_coverage90")
    names += ("linear_interval_error", "linear_run_error", "fit_s")
    error, coverage = real(link, curves, options.real_fitted, options.real_tested)
    sizes = {name: getattr(options, name) for name in ("families", "fitted", "tested", "real_fitted", "real_tested")}
    figures = dict(zip(names, own, strict=True))
    return {"link": link, **sizes, **figures, "real_error": error, "real_coverage90": coverage}


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", type=int, default=2)
    parser.add_argument("--fitted", type=int, default=6, help="drawn runs that a model is fitted to")
    parser.add_argument("--tested", type=int, default=2, help="drawn runs that it forecasts")
    parser.add_argument("--real-fitted", type=int, default=8)
    parser.add_argument("--real-tested", type=int, default=6)
    parser.add_argument("--rows", type=Path, default=ROWS, help="measured rows, which are not measured again")
    parser.add_argument("--report", action="store_true", help="print the rows there are")
    options = parser.parse_args()
    measured = {row["link"]: row for row in read_rows(options.rows)}
    missing = [] if options.report else [link for link in LINKS if link not in measured]
    curves = alexnet_runs() if missing else []
    for link in missing:
        measured[link] = measure(link, curves, options)
        with options.rows.open("a") as file:
            file.write(json.dumps(measured[link]) + "\n")
    shown = [*(link for link in LINKS if link in measured)]
    header = ["link", "latents", "interval error", "90 % band", "run error", "90 % band"]
    header += ["linear: interval", "linear: run", "fit s", "AlexNet error", "90 % band"]
    print(table(header, [[link, LINKS[link].latents, *list(measured[link].values())[6:]] for link in shown]))
    for link in shown:
        for name in ("interval_error", "interval_coverage90", "run_coverage90", "real_error", "real_coverage90"):
            result(f"{link}_{name}", measured[link][name])
    print_results()


if __name__ == "__main__":
    main()
