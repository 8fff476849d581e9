"""Does tuning on the fly win at the horizon? Final loss over that of the best fixed schedule tuned in hindsight.

Every method runs through the same loop with the same weights, data and bounds within a seed, and is charged for every
step of every fork. Bars (geometric mean over the problems): cost 5 at most 1.00; cost 2.3 at most 1.045 and 1.02 on the
networks; 1.5 at most 1.03 on the networks; and 2.3 better than a grid of five runs, PBT, PB2 and AutoLRS at cost 5. No
cost is worse than it was before rates were corrected, by a paired test.

`python -m benchmarks.horizon` resumes from results/horizon.jsonl; under two hours on two cores in all.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import numpy as np

from benchmarks._figures import BLACK, BLUE, GREEN, ORANGE, PINK, SCALE, SKY, YELLOW, Methods, quality_against_cost
from benchmarks._hindsight import SHAPES, hindsight, train
from benchmarks._oracle import oracle
from benchmarks._problems import PROBLEMS, Problem
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS, Key, Rows, arguments, complete, geometric_mean, ratios
from benchmarks.peers import AutoLRS, PopulationBasedBandits, PopulationBasedTraining
from paceline import tune
from paceline.errors import TrainingError
from paceline.strategy import Dynamic, FixedFactor, FixedSchedules, ModelQuantile, Strategy
from paceline.study import Event, Report
from paceline.tuner import Result
from paceline.views.figures import write_figure

FAMILIES = {name: shape for name, shape in SHAPES.items() if name != "exponential 0.1"}
COSTS = (1.5, 2.3, 3.2, 5)
BEFORE = "before"  # rows of plans as they were before rates were corrected: kept to compare with, never run
DEFAULTS = "horizon 2.3, defaults"  # the best moment kept and early ends allowed, as `tune` does by default


def by_model(cost: float) -> Strategy:
    """`horizon` whose clones take the rate that the trace model likes best: measured, and no better than blind."""
    return replace(Dynamic.horizon(cost=cost, judge_by="now"), chooser=ModelQuantile(clock="log"))


METHODS: dict[str, Callable[[], Strategy]] = {
    "AutoLRS, cost 5": lambda: AutoLRS(cost=5),
    "horizon 5, blind": lambda: Dynamic.horizon(cost=5, judge_by="now"),
    "horizon 5, model": lambda: by_model(5),
    "horizon 5, final": lambda: Dynamic.horizon(cost=5, judge_by="final"),
    "greedy 0.1.0": lambda: Dynamic.greedy(min_separation=0, in_sequence=False, alphas=Dynamic.paper().alphas),
    "PBT": PopulationBasedTraining,
    "PB2": PopulationBasedBandits,
    **{f"5 x {name}": lambda s=shape: FixedSchedules((s,), 5) for name, shape in FAMILIES.items()},
    "5 at random": lambda: FixedSchedules(tuple(FAMILIES.values()), 5, "random"),
    "horizon 3.2, blind": lambda: Dynamic.horizon(cost=3.2),
    "horizon 2.3, blind": lambda: Dynamic.horizon(cost=2.3),
    "AutoLRS, cost 2": AutoLRS,
    "horizon 1.5, blind": lambda: Dynamic.horizon(cost=1.5),
}
LOOKS = {5: "horizon 5, blind"}  # what judge_by="final" is compared to
NETWORKS = [p.name for p in PROBLEMS.values() if p.network]
MORE = 24  # seeds of the quadratics, where they are cheap, for that comparison
PEERS = ("AutoLRS, cost 5", "PBT", "PB2", *(f"5 x {name}" for name in FAMILIES), "5 at random")


def run(key: Key) -> dict[str, Any]:
    """One study, or the hindsight schedule alone."""
    name, method, seed = key
    if method == "hindsight":
        return {**train(name, *hindsight(name), seed), "cost": 1.0}
    if method.endswith("oracle"):
        return study(name, oracle(name, float(method.split()[1].rstrip(","))), seed)
    if method == DEFAULTS:
        return study(name, Dynamic.horizon(cost=2.3), seed, keep="best")
    return study(name, METHODS[method](), seed)


def study(name: str, strategy: Strategy, seed: int, keep: Literal["best", "last"] = "last") -> dict[str, Any]:
    """Tune a problem; final values of the fork that won, and the steps that all forks took."""
    steps = list[int]()
    try:
        found = tuned(PROBLEMS[name], strategy, seed, partial(count_steps, steps), keep)
        last = found.history.fork(found.fork).last_values
    except TrainingError as error:
        return {"raw": None, "averaged": None, "failure": str(error), "cost": sum(steps) / PROBLEMS[name].steps}
    forks = [[fork.id, *fork.schedule.multipliers.tolist()] for fork in found.history.forks]
    kept = {"value": found.value, "forks": digest(forks)} if keep == "best" or name in NETWORKS else {}
    return {**last, **kept, "cost": sum(steps) / PROBLEMS[name].steps}


def count_steps(steps: list[int], event: Event) -> None:
    """Add the steps of an interval to the list when it is reported on."""
    if isinstance(event, Report):
        steps.append(event.stop - event.start)


def digest(forks: list[list[float]]) -> str:
    """A name for the rates of all forks of a study: the same where the same was decided."""
    return sha256(json.dumps(forks).encode()).hexdigest()[:12]


def tuned(
    problem: Problem,
    strategy: Strategy,
    seed: int,
    on_event: Callable[[Any], None] = lambda _: None,
    keep: Literal["best", "last"] = "last",
) -> Result:
    """A study of a problem, without its warnings. As the hindsight schedule, it is judged by its end."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tune(
            lambda: problem.make(seed),
            steps=problem.steps,
            lr=problem.bounds(seed),
            strategy=strategy,
            seed=seed,
            on_event=on_event,
            keep=keep,
            quiet=True,
        )


def named(cost: float) -> str:
    """The row of the default strategy at a cost."""
    strategy = Dynamic.horizon(cost=cost)
    blind = "blind" if isinstance(strategy.chooser, FixedFactor) else "model"
    return f"horizon {cost:g}, {'final' if strategy.judge_by == 'final' else blind}"


def means(rows: Rows, method: str, of: str = "raw") -> tuple[float, float]:
    """Geometric means of the ratios over all problems that count, and over the networks."""
    counted = [p for p in PROBLEMS.values() if p.counted]
    ratio = {p.name: ratios(rows, method, p.name, range(p.seeds), of)[0] for p in counted}
    return geometric_mean(list(ratio.values())), geometric_mean([ratio[p.name] for p in counted if p.network])


def short(ratio: float) -> str:
    """A ratio; what diverged in powers of ten."""
    return f"{ratio:.3f}" if not ratio >= 1000 else f"{ratio:.0e}"


def print_table(rows: Rows) -> None:
    """Every method on every problem, raw / averaged, best first."""
    lines = []
    for method in sorted(["hindsight", *METHODS], key=lambda name: np.nan_to_num(means(rows, name)[0], nan=np.inf)):
        cells = []
        for p in PROBLEMS.values():
            (raw, error), (averaged, _) = (
                ratios(rows, method, p.name, range(p.seeds), of) for of in ("raw", "averaged")
            )
            cells.append(f"{short(raw)}+-{error:.3f} / {short(averaged)}")
        spent = [row["cost"] for (_, name, _), row in rows.items() if name == method]
        lines.append([method, f"{np.mean(spent):.2f}", *cells, *(f"{mean:.3f}" for mean in means(rows, method))])
    names = [p.name if p.counted else f"({p.name})" for p in PROBLEMS.values()]
    print(table(["method", "cost", *names, "all", "networks"], lines))


def print_paired(rows: Rows) -> None:
    """Two ways to choose rates at cost 5, the plans now and before, and decisions with and without the best moment."""
    print("\nRates by the model over blind ones at cost 5, %\n")
    print_differences(rows, {"5": ("horizon 5, model", "horizon 5, blind")})
    print("\nPlans now over those before rates were corrected, %\n")
    print_differences(rows, {f"{cost:g}": (named(cost), f"horizon {cost:g}, {BEFORE}") for cost in COSTS})
    same = [
        (rows[name, DEFAULTS, seed], rows[name, named(2.3), seed])
        for name in NETWORKS
        for seed in range(PROBLEMS[name].seeds)
    ]
    count = sum(some["forks"] == other["forks"] for some, other in same)
    gain = np.mean([np.log(some["value"] / min(other["raw"], other["averaged"])) for some, other in same])
    print(
        f"\nCost 2.3 with the best moment kept and early ends allowed: {count} of {len(same)} studies of the networks"
    )
    print(f"decide the same, and the best moment lies {100 * gain:+.1f} % from the better end")
    result("horizon_defaults_decide_the_same", count / len(same))


def print_differences(rows: Rows, pairs: dict[str, tuple[str, str]]) -> None:
    """Paired differences of the log of the raw final loss between methods."""
    lines = []
    for label, (method, other) in pairs.items():
        found = {p: gains(rows, p.name, method, other) for p in PROBLEMS.values()}
        errors = {p: gain.std(ddof=1) / np.sqrt(len(gain)) for p, gain in found.items()}
        cells = [f"{100 * gain.mean():+.1f} +- {100 * errors[p]:.1f} ({len(gain)})" for p, gain in found.items()]
        counted = [p for p in found if p.counted]
        mean = float(np.mean([found[p].mean() for p in counted]))
        error = float(np.linalg.norm([errors[p] for p in counted])) / len(counted)
        lines.append([label, *cells, f"{100 * mean:+.1f} +- {100 * error:.1f}"])
        name = f"{method} over {other}".replace(" ", "_").replace(",", "")
        result(name, mean)
        result(f"{name}_error", error)
    names = [p.name if p.counted else f"({p.name})" for p in PROBLEMS.values()]
    print(table(["cost", *names, "mean of those counted"], lines))


def gains(rows: Rows, problem: str, method: str, other: str) -> np.ndarray:
    """Log of the raw final loss of one method over that of another, seed by seed."""
    seeds = [s for p, m, s in rows if p == problem and m == other and (p, method, s) in rows]
    return np.log([rows[problem, method, s]["raw"] / rows[problem, other, s]["raw"] for s in sorted(seeds)])


def print_looks(rows: Rows) -> None:
    """Deciding by the forecast of the end against deciding by the value now; and with the true expected end."""
    lines = []
    for cost, other in LOOKS.items():
        for kind in ("final", "oracle"):
            cells, means_, errors = [], [], []
            for p in PROBLEMS.values():
                gain = gains(rows, p.name, f"horizon {cost:g}, {kind}", other)
                if not len(gain):
                    cells.append("")
                    continue
                error = gain.std(ddof=1) / np.sqrt(len(gain))
                cells.append(f"{100 * gain.mean():+.1f} +- {100 * error:.1f} ({len(gain)})")
                if p.counted:
                    means_.append(gain.mean())
                    errors.append(error)
            mean, error = float(np.mean(means_)), float(np.linalg.norm(errors)) / len(errors)
            lines.append([f"{cost:g}", kind, *cells, f"{100 * mean:+.1f} +- {100 * error:.1f}"])
            result(f"horizon_{kind}_over_now_{cost:g}", mean)
            result(f"horizon_{kind}_over_now_{cost:g}_error", error)
    names = [p.name if p.counted else f"({p.name})" for p in PROBLEMS.values()]
    print(table(["cost", "look", *names, "mean of those counted"], lines))


def draw(rows: Rows) -> None:
    """Quality against cost."""
    tuners = {
        ("horizon", BLUE, "circle"): {cost: named(cost) for cost in COSTS},
        ("horizon, rates by the model", ORANGE, "square"): {5: "horizon 5, model"},
        ("5 x linear", GREEN, "triangle-up"): {5: "5 x linear"},
        ("5 at random", SKY, "triangle-down"): {5: "5 at random"},
        ("PBT", PINK, "diamond"): {5: "PBT"},
        ("PB2", YELLOW, "cross"): {5: "PB2"},
        ("AutoLRS, cost 5", BLACK, "x-thin"): {5: "AutoLRS, cost 5"},
    }
    methods = list[Methods]()
    for look, by_cost in tuners.items():
        percent = [[100 * (ratio - 1) for ratio in means(rows, method)] for method in by_cost.values()]
        overall, networks = zip(*percent, strict=True)
        methods.append(Methods(*look, tuple(by_cost), {"all problems": overall, "networks": networks}))
    write_figure(quality_against_cost(methods), RESULTS / "horizon.png", width=1000, scale=SCALE)


def main() -> None:
    """Complete the table and print it."""
    options = arguments(__doc__)
    methods = [name for name in ["hindsight", *METHODS] if options.only in name]
    problems = [p for p in reversed(PROBLEMS.values()) if options.problem in ("", p.name)]  # the longest first
    keys = [(p.name, method, seed) for p in problems for method in methods for seed in range(p.seeds)]
    oracles = [f"horizon {cost:g}, oracle" for cost in LOOKS]
    looks = [*LOOKS.values(), *oracles, *map(named, COSTS)]
    cheap = [p for p in problems if not p.network and p.counted]
    more = [(p.name, method, seed) for p in cheap for method in looks for seed in range(MORE)]
    more += [(p.name, method, seed) for p in problems if not p.network for method in oracles for seed in range(p.seeds)]
    more += [(p.name, DEFAULTS, seed) for p in problems if p.network for seed in range(p.seeds)]
    keys += [key for key in more if options.only in key[1] and key not in keys]
    jobs = options.jobs if not options.report else 0
    rows = complete(RESULTS / "horizon.jsonl", keys, run, jobs=jobs, limit=options.limit)
    if any(key not in rows for key in keys) or options.only or options.problem:
        print(f"{sum(key in rows for key in keys)} of {len(keys)} runs are done: run it again to go on")
        return
    print(machine())
    print("\nFinal loss over that of the hindsight schedule, +- standard error; raw / averaged weights\n")
    print_table(rows)
    print_paired(rows)
    print('\njudge_by="final" over the same without it, % +- standard error (seeds); oracle: told the expected end\n')
    print_looks(rows)
    for cost in COSTS:
        for of in ("raw", "averaged"):
            overall, networks = means(rows, named(cost), of)
            result(f"horizon_{cost:g}_{of}_all", overall)
            result(f"horizon_{cost:g}_{of}_networks", networks)
    for method in ("greedy 0.1.0", *PEERS):
        result(f"{method.replace(' ', '_').replace(',', '')}_all", means(rows, method)[0])
    hours = sum(row["seconds"] for row in rows.values()) / 3600
    print(f"\n{len(rows)} runs, {hours:.2f} core hours")
    print_results()
    draw(rows)


if __name__ == "__main__":
    main()
