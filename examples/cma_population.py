"""Tune the population size of CMA-ES on the fly, as the paper's concluding comments suggest, through the same tuner.

What is tuned is the population size, on a log scale from 4 to 200, in place of a rate; a step is one evaluation of the
function; the value is the median of a generation. Four functions in eight dimensions, six seeds: each method has 6,000
evaluations in all. A fixed size has them in one run; tuned runs share them among their forks.

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
from cma import purecma

import paceline
from paceline.shapes import Constant
from paceline.strategy import Dynamic
from paceline.strategy.plan import Plan, Rung
from paceline.traces import Schedule

HERE = Path(__file__).parent
ROWS, FIGURE = HERE / "cma_population.jsonl", HERE.parent / "docs" / "integrations" / "cma.png"
DIMS, BUDGET, SIZES, SEEDS, FLOOR = 8, 6000, (6, 14, 30, 70, 160), 6, 1e-20


def sphere(x: np.ndarray) -> float:
    return float(x @ x)


def rosenbrock(x: np.ndarray) -> float:
    return float(np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2))


def rastrigin(x: np.ndarray) -> float:
    return float(10.0 * len(x) + np.sum(x**2 - 10.0 * np.cos(2.0 * np.pi * x)))


class Evolution:
    """One run of CMA-ES as a `Training`; its state is plain numbers, a generation may go on across a rung."""

    def __init__(self, f: Callable[[np.ndarray], float], seed: int, noise: float = 0.0) -> None:
        self.f, self.noise, self.done = f, noise, 0
        self.rng = np.random.default_rng(seed)
        self.es = purecma.CMAES(list(self.rng.uniform(1.0, 4.0, DIMS)), 2.0, randn=lambda m, s: self.rng.normal(m, s))
        self.asked, self.values = list[list[float]](), list[float]()

    def advance(self, schedule: Schedule, stop: int) -> Iterator[tuple[int, float]]:
        while self.done < stop:
            if not self.asked:
                self.es.params = purecma.CMAESParameters(DIMS, round(schedule(self.done)))
                self.asked, self.values = [list(x) for x in self.es.ask()], []
            fresh = self.asked[len(self.values) :][: stop - self.done]
            self.values += [self.f(np.array(x)) + self.noise * self.rng.standard_normal() for x in fresh]
            self.done += len(fresh)
            yield self.done, float(np.median(self.values))
            if len(self.values) == len(self.asked):
                self.es.tell(self.asked, self.values)
                self.asked = []

    def state_dict(self) -> dict[str, Any]:
        es = self.es
        self._decompose()  # anew from here on, whether this run goes on or a clone does
        named = {name: [float(v) for v in getattr(es, name)] for name in ("xmean", "pc", "ps")}
        plain = {"C": [[float(v) for v in row] for row in es.C], "sigma": float(es.sigma), "count": es.counteval}
        work = {"asked": self.asked, "values": self.values, "size": es.params.lam, "done": self.done}
        return {**named, **plain, **work, "rng": self.rng.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        es, state = self.es, json.loads(json.dumps(state))
        es.xmean, es.pc, es.ps, es.sigma, es.counteval = (state[k] for k in ("xmean", "pc", "ps", "sigma", "count"))
        for i, row in enumerate(state["C"]):
            es.C[i][:] = row
        es.params = purecma.CMAESParameters(DIMS, state["size"])
        self._decompose()
        self.asked, self.values, self.done = state["asked"], state["values"], state["done"]
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
    """Where the winner's distribution stands, and the sizes it took."""
    cost = strategy.plan.total_steps(BUDGET) / BUDGET
    result = paceline.tune(make, steps=int(BUDGET / cost), lr=(4.0, 200.0), strategy=strategy, seed=seed)
    assert result.schedule is not None
    return result.weights()["xmean"], result.schedule


HORIZON = replace(Dynamic.horizon(base=Constant()), weights="raw", transform="identity")
LATE = replace(HORIZON, plan=Plan(4, (Rung(0.25, 2), Rung(0.5, 2, 1), Rung(0.75, 2, 1)), protect=True))
METHODS: dict[str, Dynamic] = {
    "horizon": HORIZON,  # eight sizes, halved early, then a challenger at each rung
    "late rungs": LATE,  # four sizes for a quarter of the run, two from then on
    "Algorithm 1": Dynamic.greedy(forks=3, intervals=8),  # the paper's own
}


def row(problem: str, method: str, seed: int) -> dict[str, Any]:
    """One run: the true value of the mean of the distribution at the end, and the sizes on the way."""
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
    parser.add_argument("--table", action="store_true", help="only show what was measured")
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
    draw(rows)


def draw(rows: list[dict[str, Any]]) -> None:
    """Ends of fixed sizes as a line, of tuned ones as points beside it, and the sizes that tuned runs took."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    colours = dict(zip(METHODS, ("#d55e00", "#0072b2", "#009e73"), strict=True))
    figure, axes = plt.subplots(2, len(PROBLEMS), figsize=(12, 6), gridspec_kw={"height_ratios": [3, 2]})
    for (above, below), problem in zip(axes.T, PROBLEMS, strict=True):
        mine = [r for r in rows if r["problem"] == problem]
        ends = {m: np.array([r["value"] for r in mine if r["method"] == m]) for m in (*map(str, SIZES), *METHODS)}
        spread = {m: np.quantile(v, [0.25, 0.5, 0.75]) for m, v in ends.items()}
        lines = np.array([spread[str(size)] for size in SIZES])
        above.fill_between(SIZES, lines[:, 0], lines[:, 2], color="#999999", alpha=0.3, lw=0)
        above.plot(SIZES, lines[:, 1], "o-", color="#555555", label="a fixed size, 6,000 evaluations in one run")
        for i, (method, colour) in enumerate(colours.items()):
            low, middle, high = spread[method]
            at = 270 * 1.5**i
            above.plot([at, at], [low, high], color=colour, lw=2)
            above.plot(at, middle, "D", color=colour, label=f"tuned, {method}: 6,000 in all forks")
            for k, r in enumerate([r for r in mine if r["method"] == method]):
                points, sizes = r["sizes"]
                below.stairs(
                    sizes, points, color=colour, alpha=0.9 if k == 0 else 0.3, lw=1.6 if k == 0 else 0.9, baseline=None
                )
        above.axvline(215, color="#bbbbbb", lw=0.8)
        above.set(title=problem, xscale="log", yscale="log", xlabel="population size")
        above.set_xticks([6, 14, 30, 70, 160, 400], ["6", "14", "30", "70", "160", "tuned"])
        above.minorticks_off()
        low, high = above.get_ylim()
        if high < 100 * low:  # powers of ten alone would leave one label
            near = [k * 10.0**e for e in range(-3, 3) for k in (1, 2, 5)]
            shown = [tick for tick in near if low < tick < high]
            above.set_yticks(shown, [f"{tick:g}" for tick in shown])
        below.set(yscale="log", ylim=(3, 260), xlabel="evaluations of the winning fork")
        below.set_yticks([4, 14, 50, 200], ["4", "14", "50", "200"])
        below.minorticks_off()
    axes[0, 0].set_ylabel("f at the mean, at the end\nmedian and quartiles")
    axes[1, 0].set_ylabel("population size\n(six seeds)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower center", ncol=2, frameon=False)
    figure.tight_layout(rect=(0, 0.09, 1, 1))
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
