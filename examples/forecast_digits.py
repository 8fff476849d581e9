"""Fit the trace model to a few real runs, forecast schedules it has not seen, and look at the result.

Trains a small network on scikit-learn's digits twelve times with random piecewise-constant rates (a few seconds), fits
the model to ten of the runs, and forecasts the other two: from nothing, and from half-way.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

from paceline import LearningRateRange, Schedule, Trace, TraceModel
from paceline.model import Forecast
from paceline.problems import train_digits
from paceline.views.figures import write_figure

STEPS, INTERVALS, BOUNDS = 600, 6, LearningRateRange(1e-4, 3e-2)


def random_schedule(rng: np.random.Generator) -> Schedule:
    return Schedule(BOUNDS.from_unit(rng.uniform(size=INTERVALS)), np.linspace(0, STEPS, INTERVALS + 1))


def report(run: Trace, forecasts: list[tuple[int, Forecast]]) -> None:
    print(f"\nrun {run.name}: rates " + ", ".join(f"{rate:.1e}" for rate in run.schedule.multipliers))
    print(f"{'forecast from':>14}  {'at step':>7}  {'median':>7}  {'90 % band':>17}  {'observed':>13}")
    for begun, forecast in forecasts:
        low, high = forecast.band(0.9)
        for i in (len(forecast.steps) // 2, len(forecast.steps) - 1):
            step = int(forecast.steps[i])
            truth = run.values[np.searchsorted(run.steps, step)]
            band = f"{low[i]:.3f} to {high[i]:.3f}"
            print(f"{f'step {begun}':>14}  {step:>7}  {forecast.median[i]:>7.3f}  {band:>17}  {truth:>13.3f}")


def figure_of(runs: list[Trace], forecasts: list[list[tuple[int, Forecast]]]) -> go.Figure:
    """Values with both forecasts above, rates below, for each run."""
    titles = [f"run {run.name}, which the model has not seen" for run in runs]
    figure = make_subplots(
        rows=2, cols=len(runs), shared_xaxes=True, row_heights=[3, 1], vertical_spacing=0.06, subplot_titles=titles
    )
    for column, (run, run_forecasts) in enumerate(zip(runs, forecasts, strict=True), 1):
        for (begun, forecast), colour in zip(run_forecasts, ("0,114,178", "213,94,0"), strict=True):
            low, high = forecast.band(0.9)
            steps = np.concatenate([forecast.steps, forecast.steps[::-1]])
            band = go.Scatter(
                x=steps, y=np.concatenate([low, high[::-1]]), fill="toself", line_width=0, showlegend=False
            )
            figure.add_trace(band.update(fillcolor=f"rgba({colour},0.2)"), row=1, col=column)
            name = f"forecast from step {begun}, 90 % band"
            median = go.Scatter(x=forecast.steps, y=forecast.median, name=name, line_color=f"rgb({colour})")
            figure.add_trace(median.update(showlegend=column == 1), row=1, col=column)
        values = go.Scatter(x=run.steps, y=run.values, name="observed", line={"color": "black", "width": 1.5})
        figure.add_trace(values.update(showlegend=column == 1), row=1, col=column)
        rates = go.Scatter(x=np.arange(STEPS), y=run.schedule(np.arange(STEPS)), line_color="#009E73", showlegend=False)
        figure.add_trace(rates.update(line_shape="hv"), row=2, col=column)
    figure.update_traces(mode="lines")
    figure.update_yaxes(type="log", dtick="D2", exponentformat="none", row=1)
    figure.update_yaxes(type="log", dtick=1, exponentformat="power", row=2)
    figure.update_yaxes(range=np.log10([BOUNDS.low / 1.5, BOUNDS.high * 1.5]).tolist(), row=2)
    figure.update_yaxes(title_text="validation loss", row=1, col=1)
    figure.update_yaxes(title_text="learning rate", row=2, col=1)
    figure.update_xaxes(title_text="step", row=2)
    return figure.update_layout(
        template="simple_white", height=520, margin={"t": 36, "b": 96, "r": 16}, legend={"orientation": "h", "y": -0.18}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path, default=Path("forecast_digits.html"))
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
    write_figure(figure_of(runs[10:], shown), options.figure, width=1000, scale=1.25)
    print(f"figure: {options.figure}")


if __name__ == "__main__":
    main()
