"""Tune the population size of CMA-ES on the fly, with the same tuner, as the paper's concluding comments suggest.

The population size takes the place of the rate, on a log scale from 4 to 200. A step is one evaluation of the function,
and the value is the median of a generation. There are four functions in eight dimensions and six seeds. Each method has
6,000 evaluations in all: a fixed size uses them in one run, tuned runs share them among their forks.

    python -m examples.cma_population            # about ten minutes; rows are kept, and resumed
    python -m examples.cma_population --table    # the table and the figure from the rows that are there
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from cma import purecma
from plotly.subplots import make_subplots

import paceline
from paceline.shapes import Constant
from paceline.strategy import Dynamic, ForkPlan, Rung
from paceline.traces import Schedule
from paceline.views.figures import write_figure

HERE = Path(__file__).parent
ROWS, FIGURE = HERE / "cma_population.jsonl", HERE.parent / "docs" / "integrations" / "cma.png"
COLOURS = ("#d55e00", "#0072b2", "#009e73")  # of the methods
DIMS, BUDGET, SIZES, SEEDS, FLOOR = 8, 6000, (6, 14, 30, 70, 160), 6, 1e-20


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def rosenbrock(x: np.ndarray) -> float:
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))


def rastrigin(x: np.ndarray) -> float:
    return float(10.0 * len(x) + np.sum(x**2 - 10.0 * np.cos(2.0 * np.pi * x)))


class Evolution:
    """One run of CMA-ES as a `Training`. A decision may come in the middle of a generation."""

    def __init__(self, f: Callable[[np.ndarray], float], seed: int, noise: float = 0.0) -> None:
        self.f, self.noise, self.evaluations = f, noise, 0
        self.rng = np.random.default_rng(seed)
        self.es = purecma.CMAES(list(self.rng.uniform(1.0, 4.0, DIMS)), 2.0, randn=lambda m, s: self.rng.normal(m, s))
        self.asked, self.values = list[list[float]](), list[float]()

    def advance(self, schedule: Schedule, stop: int) -> Iterator[tuple[int, float]]:
        while self.evaluations < stop:
            if not self.asked:
                self.es.params = purecma.CMAESParameters(DIMS, round(schedule(self.evaluations)))
                self.asked, self.values = [list(x) for x in self.es.ask()], []
            fresh = self.asked[len(self.values) :][: stop - self.evaluations]
            self.values += [self.f(np.array(x)) + self.noise * self.rng.standard_normal() for x in fresh]
            self.evaluations += len(fresh)
            yield self.evaluations, float(np.median(self.values))
            if len(self.values) == len(self.asked):
                self.es.tell(self.asked, self.values)
                self.asked = []

    def state_dict(self) -> dict[str, Any]:
        es = self.es
        self._decompose()  # so that this run and a clone of it continue from the same decomposition
        named = {name: [float(v) for v in getattr(es, name)] for name in ("xmean", "pc", "ps")}
        plain = {"C": [[float(v) for v in row] for row in es.C], "sigma": float(es.sigma), "count": es.counteval}
        work = {"asked": self.asked, "values": self.values, "size": es.params.lam, "evaluations": self.evaluations}
        return {**named, **plain, **work, "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        es, state = self.es, json.loads(json.dumps(state))
        es.xmean, es.pc, es.ps, es.sigma, es.counteval = (state[k] for k in ("xmean", "pc", "ps", "sigma", "count"))
        for i, row in enumerate(state["C"]):
            es.C[i][:] = row
        es.params = purecma.CMAESParameters(DIMS, state["size"])
        self._decompose()
        self.asked, self.values, self.evaluations = state["asked"], state["values"], state["evaluations"]
        self.rng.bit_generator.state = state["rng"]

    def _decompose(self) -> None:
        self.es.C.updated_eval = -np.inf
        self.es.C.update_eigensystem(self.es.counteval, 0)

    def reseed(self, seed: int) -> None:
        self.rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state


PROBLEMS: dict[str, Callable[[int], Evolution]] = {
    "sphere": partial(Evolution, sphere),
    "Rosenbrock": partial(Evolution, rosenbrock),
    "Rastrigin": partial(Evolution, rastrigin),
    "noisy sphere": partial(Evolution, sphere, noise=1.0),
}


def tuned(make: Callable[[], Evolution], strategy: Dynamic, seed: int) -> tuple[list[float], paceline.Schedule]:
    """The mean of the winner's distribution at the end, and its population sizes."""
    cost = strategy.plan.total_steps(BUDGET) / BUDGET
    result = paceline.tune(make, steps=int(BUDGET / cost), lr=(4.0, 200.0), strategy=strategy, seed=seed)
    assert result.schedule is not None
    return result.weights()["xmean"], result.schedule


HORIZON = replace(Dynamic.horizon(base=Constant()), weights="raw", transform="identity")
LATE = replace(HORIZON, plan=ForkPlan(4, (Rung(0.25, 2), Rung(0.5, 2, 1), Rung(0.75, 2, 1)), protect_leader=True))
METHODS: dict[str, Dynamic] = {
    "horizon": HORIZON,  # eight sizes, halved early, then a challenger at each rung
    "late rungs": LATE,  # four sizes for a quarter of the run, two from then on
    "Algorithm 1": Dynamic.greedy(forks=3, intervals=8),  # the paper's own
}


def row(problem: str, method: str, seed: int) -> dict[str, Any]:
    """One run: the true value of the distribution's mean at the end, and the population sizes."""
    make = partial(PROBLEMS[problem], seed)
    if method in METHODS:
        mean, schedule = tuned(make, METHODS[method], seed)
    else:
        run, schedule = make(), Schedule.constant(float(method), BUDGET)
        for _ in run.advance(schedule, BUDGET):
            pass
        mean = run.es.xmean
    sizes = [[int(p) for p in schedule.change_points], [round(float(m)) for m in schedule.multipliers]]
    end = max(PROBLEMS[problem](0).f(np.array(mean)), FLOOR)
    return {"problem": problem, "method": method, "seed": seed, "value": end, "sizes": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="only show the rows that are there")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    known = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []
    done = {(r["problem"], r["method"], r["seed"]) for r in known}
    for seed in () if options.table else range(options.seeds):
        for problem in PROBLEMS:
            for method in (*map(str, SIZES), *METHODS):
                if (problem, method, seed) not in done:
                    known.append(row(problem, method, seed))
                    with ROWS.open("a") as file:
                        file.write(json.dumps(known[-1]) + "\n")
    show(known)


def show(rows: list[dict[str, Any]]) -> None:
    for problem in PROBLEMS:
        print(f"\n{problem}: median of the end, and quartiles")
        for method in (*map(str, SIZES), *METHODS):
            ends = [r["value"] for r in rows if (r["problem"], r["method"]) == (problem, method)]
            if ends:
                low, middle, high = np.quantile(ends, [0.25, 0.5, 0.75])
                print(f"  {method:>20} {middle:10.3g}  ({low:.2g} to {high:.2g}), {len(ends)} seeds")
    write_figure(draw(rows), FIGURE, width=1150, scale=1.25)


def draw(rows: list[dict[str, Any]]) -> go.Figure:
    """Final values of fixed sizes as a line, of tuned ones as points beside it, and the sizes of tuned runs below."""
    figure = make_subplots(
        rows=2,
        cols=len(PROBLEMS),
        row_heights=[3, 2],
        vertical_spacing=0.2,
        horizontal_spacing=0.06,
        subplot_titles=list(PROBLEMS),
    )
    for column, problem in enumerate(PROBLEMS, 1):
        own = [row for row in rows if row["problem"] == problem]
        for trace in final_values(own, legend=column == 1):
            figure.add_trace(trace, row=1, col=column)
        for trace in tuned_sizes(own):
            figure.add_trace(trace, row=2, col=column)
        if max(row["value"] for row in own) < 1e3 * min(row["value"] for row in own):
            figure.update_yaxes(dtick="D2", row=1, col=column)  # powers of ten alone would leave one label
        figure.add_vline(x=215, line={"color": "#bbbbbb", "width": 1}, row=1, col=column)
    labels = {str(size): size for size in (6, 14, 30, 70, 160)} | {"tuned": 400}
    figure.update_xaxes(
        type="log",
        tickvals=list(labels.values()),
        ticktext=list(labels),
        title_text="population size",
        tickangle=0,
        row=1,
    )
    figure.update_yaxes(type="log", exponentformat="power", row=1)
    figure.update_xaxes(title_text="evaluations of the winning fork", row=2)
    figure.update_yaxes(type="log", range=np.log10([3, 260]).tolist(), tickvals=[4, 14, 50, 200], row=2)
    figure.update_yaxes(title_text="f at the mean, at the end<br>median and quartiles", row=1, col=1)
    figure.update_yaxes(title_text=f"population size<br>({SEEDS} seeds)", row=2, col=1)
    return figure.update_layout(
        template="simple_white",
        height=620,
        margin={"t": 36, "b": 120, "r": 16},
        legend={"orientation": "h", "y": -0.16},
    )


def final_values(rows: list[dict[str, Any]], *, legend: bool) -> list[go.Scatter]:
    """Median and quartiles of each fixed size and of each method."""
    values = {m: [row["value"] for row in rows if row["method"] == m] for m in (*map(str, SIZES), *METHODS)}
    quartiles = {method: np.quantile(column, [0.25, 0.5, 0.75]) for method, column in values.items()}
    low, median, high = np.array([quartiles[str(size)] for size in SIZES]).T
    band = go.Scatter(x=[*SIZES, *SIZES[::-1]], y=[*low, *high[::-1]], fill="toself", fillcolor="rgba(153,153,153,0.3)")
    fixed = go.Scatter(x=SIZES, y=median, mode="lines+markers", line_color="#555555", marker_size=8)
    traces = [
        band.update(mode="lines", line_width=0, showlegend=False),
        fixed.update(name="a fixed size, 6,000 evaluations in one run", showlegend=legend),
    ]
    for i, (method, colour) in enumerate(zip(METHODS, COLOURS, strict=True)):
        low, median, high = quartiles[method]
        bars = {"type": "data", "array": [high - median], "arrayminus": [median - low], "width": 0, "thickness": 2}
        point = go.Scatter(x=[270 * 1.5**i], y=[median], mode="markers", error_y=bars, showlegend=legend)
        traces.append(
            point.update(
                marker={"color": colour, "size": 9, "symbol": "diamond"}, name=f"tuned, {method}: 6,000 in all forks"
            )
        )
    return traces


def tuned_sizes(rows: list[dict[str, Any]]) -> list[go.Scatter]:
    """The population size of each winning fork; that of the first seed is bold."""
    traces = []
    for method, colour in zip(METHODS, COLOURS, strict=True):
        for k, row in enumerate([row for row in rows if row["method"] == method]):
            points, sizes = row["sizes"]
            line = go.Scatter(x=points, y=[*sizes, sizes[-1]], mode="lines", showlegend=False)
            look = {"color": colour, "width": 2 if k == 0 else 1, "shape": "hv"}
            traces.append(line.update(line=look, opacity=0.9 if k == 0 else 0.35))
    return traces


if __name__ == "__main__":
    main()
