"""Tables of the peers: ratio to hindsight, paired differences, bars, wall time and lines of the user's code."""

from typing import NamedTuple

import numpy as np

from benchmarks._problems import PROBLEMS, Problem
from benchmarks._report import print_results, table
from benchmarks._report import result as keep_result
from benchmarks._runs import RESULTS as BENCHMARKS
from benchmarks._runs import Rows, load
from experiments._peer_knobs import KNOBS, units
from experiments._peer_lines import lines_of

MARGIN = 0.02  # by which `horizon` may be behind the best peer
ENOUGH = 5  # seeds; a figure over fewer is shown, and counts in no mean and no bar


class Method(NamedTuple):
    """A row of the tables: the runs made for it, of which the best counts, its budget, and whose code it is."""

    units: tuple[str, ...]
    budget: float
    code: str


METHODS = {
    "horizon 5": Method(("horizon 5",), 5, "horizon"),
    "horizon 2.3": Method(("horizon 2.3",), 2.3, "horizon"),
    "Ray PBT": Method(("PBT",), 5, "PBT"),
    "Ray PB2": Method(("PB2",), 5, "PB2"),
    "Optuna 5": Method(("Optuna 5",), 5, "Optuna"),
    "Optuna 2.3": Method(("Optuna 2.3",), 2.3, "Optuna"),
    **{f"{name} x {n}": Method(tuple(units(name, n)), n, name) for name in KNOBS for n in KNOBS[name]},
}
ASIDE = "horizon 5, Adam"  # on the quadratics, where Prodigy brings Adam and the problem's own optimiser is SGD
COUNTED = [p for p in PROBLEMS.values() if p.counted]


def result(name: str, value: float) -> None:
    """Keep a figure for the `RESULT` lines, where its runs are there."""
    if not np.isnan(value):
        keep_result(name, value)


def finals(rows: Rows, method: str, problem: Problem) -> dict[int, float]:
    """Final loss by seed, where all runs of a method are there; infinite where all diverged."""
    losses = {}
    for seed in range(problem.seeds):
        runs = [rows.get((problem.name, unit, seed)) for unit in METHODS[method].units]
        if None not in runs:
            values = [run["raw"] for run in runs if run is not None]
            losses[seed] = min((v for v in values if v is not None), default=np.inf)
    return losses


def ratio(ours: dict[int, float], truth: dict[int, float]) -> tuple[float, float, int]:
    """Mean final loss over that of the hindsight schedule on the same seeds, its standard error, and the seeds."""
    seeds = [seed for seed in ours if seed in truth]
    if len(seeds) < 2:
        return np.nan, np.nan, len(seeds)
    a, b = np.array([ours[s] for s in seeds]), np.array([truth[s] for s in seeds])
    value = a.mean() / b.mean()
    return float(value), float((a - value * b).std(ddof=1) / np.sqrt(len(seeds)) / b.mean()), len(seeds)


def paired(ours: dict[int, float], other: dict[int, float]) -> tuple[float, float, int]:
    """Mean log ratio of two methods over the seeds that both have, its standard error, and how many."""
    seeds = [seed for seed in ours if seed in other]
    if len(seeds) < 2:
        return np.nan, np.nan, len(seeds)
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = np.log([ours[s] / other[s] for s in seeds])
        return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(seeds))), len(seeds)


def figure(value: float, error: float, count: int, of: int, *, percent: bool = False) -> str:
    """A mean with its error; how many seeds where not all are there yet."""
    if not count or np.isnan(value):
        return ""
    some = f" ({count})" if count < of else ""
    if percent:
        return f"{100 * value:+.1f} +- {100 * error:.1f}{some}" if abs(value) < 10 else f"{value:+.1e}{some}"
    return f"{value:.3f} +- {error:.3f}{some}" if value < 1000 else f"{value:.0e}{some}"


def print_ratios(rows: Rows) -> dict[str, dict[str, float]]:
    """Every method on every problem, best first; the ratios."""
    past = load(BENCHMARKS / "horizon.jsonl")
    lines, ratios_of = list[list[object]](), dict[str, dict[str, float]]()
    for method, (_, budget, code) in METHODS.items():
        cells, ratios_of[method] = list[str](), {}
        for p in PROBLEMS.values():
            truth = {s: past[p.name, "hindsight", s]["raw"] for s in range(p.seeds)}
            value, error, count = ratio(finals(rows, method, p), truth)
            cells.append(figure(value, error, count, p.seeds))
            ratios_of[method][p.name] = value if count >= ENOUGH else np.nan
        every = mean_ratio(ratios_of[method], COUNTED)
        networks = mean_ratio(ratios_of[method], [p for p in COUNTED if p.network])
        both = [figure(mean, 0, 1, 1).split()[:1] for mean in (every, networks)]
        lines.append([method, f"{budget:g}", *cells, *("".join(mean) for mean in both), lines_of(code)])
        result(f"peers_{result_name(method)}_all", every)
    lines.sort(key=lambda line: float(str(line[-3]) or np.inf))
    names = [p.name if p.counted else f"({p.name})" for p in PROBLEMS.values()]
    print(table(["method", "budget", *names, "all", "networks", "lines"], lines))
    return ratios_of


def mean_ratio(ratios: dict[str, float], problems: list[Problem]) -> float:
    """Geometric mean over problems."""
    return float(np.exp(np.mean(np.log([ratios[p.name] for p in problems]))))


def result_name(method: str) -> str:
    """A method's name in a `RESULT` line."""
    return method.replace(" ", "_").replace("-", "_").lower()


def print_paired(rows: Rows, ours: str, peers: list[str]) -> dict[str, dict[str, float]]:
    """One of ours against peers, seed by seed: below zero, ours is better. The means by peer and problem."""
    lines, means = list[list[object]](), dict[str, dict[str, float]]()
    for peer in peers:
        cells, errors, means[peer] = list[str](), list[float](), {}
        for p in PROBLEMS.values():
            value, error, count = paired(finals(rows, ours, p), finals(rows, peer, p))
            cells.append(figure(value, error, count, p.seeds, percent=True))
            means[peer][p.name] = value if count >= ENOUGH else np.nan
            errors += [error] if p.counted else []
        mean, error = np.mean([means[peer][p.name] for p in COUNTED]), np.linalg.norm(errors) / len(errors)
        lines.append([peer, *cells, figure(float(mean), float(error), 1, 1, percent=True)])
        result(f"peers_{result_name(ours)}_over_{result_name(peer)}", float(mean))
        result(
            f"peers_{result_name(ours)}_over_{result_name(peer)}_error", float(error + 0 * mean)
        )  # none without its mean
    names = [p.name if p.counted else f"({p.name})" for p in PROBLEMS.values()]
    budgets = " or ".join(f"{b:g}" for b in sorted({METHODS[peer].budget for peer in peers}))
    print(f"\n{ours} over each peer at budget {budgets}: log ratio in % +- standard error; negative, it is better\n")
    print(table(["peer", *names, "mean of those counted"], lines))
    return means


def print_bars(ours: str, ratios: dict[str, dict[str, float]], means: dict[str, dict[str, float]]) -> None:
    """Not more than 2 % behind the best peer on any problem, and ahead of each on average."""
    print(f"\nBars of {ours}")
    for p in PROBLEMS.values():
        available = [peer for peer in means if np.isfinite(ratios[peer][p.name])]
        if not available or np.isnan(ratios[ours][p.name]):
            continue
        best = min(available, key=lambda peer: ratios[peer][p.name])
        behind = ratios[ours][p.name] / ratios[best][p.name] - 1
        verdict = "holds" if behind <= MARGIN else "MISSED"
        note = "" if len(available) == len(means) else f", of the {len(available)} of {len(means)} peers that are there"
        note += "" if p.counted else "; not counted"
        print(f"  {p.name}: best peer {best}, ratio of mean losses {100 * behind:+.1f} %: {verdict}{note}")
        result(f"peers_{result_name(ours)}_behind_best_{result_name(p.name)}", behind)
    for peer in means:
        mean = float(np.mean([means[peer][p.name] for p in COUNTED]))
        verdict = "" if np.isnan(mean) else "ahead" if mean < 0 else "BEHIND"
        print(f"  on average against {peer}: {verdict or 'not all runs are there'}")


def print_aside(rows: Rows) -> None:
    """What of Prodigy's result on the quadratics is Adam's: `horizon` over Adam, in the same bounds."""
    lines = list[list[object]]()
    for p in (p for p in COUNTED if not p.network):
        ours = {s: row["raw"] for (name, method, s), row in rows.items() if (name, method) == (p.name, ASIDE)}
        for other in ("horizon 5", "Prodigy x 5", "D-Adaptation x 5"):
            lines.append([p.name, other, figure(*paired(ours, finals(rows, other, p)), p.seeds, percent=True)])
            result(
                f"peers_horizon_5_adam_over_{result_name(other)}_{result_name(p.name)}",
                paired(ours, finals(rows, other, p))[0],
            )
    print("\nhorizon 5 over Adam, where the problem's own optimiser is SGD: log ratio in % +- standard error\n")
    print(table(["problem", "over", "horizon 5, Adam"], lines))


def print_seconds(rows: Rows) -> None:
    """Median wall time of a study by problem."""
    lines = list[list[object]]()
    for method, (runs, _, _) in METHODS.items():
        cells = list[str]()
        for p in PROBLEMS.values():
            seconds = [sum(rows[p.name, u, s]["seconds"] for u in runs) for s in finals(rows, method, p)]
            cells.append(f"{np.median(seconds):.1f}" if seconds else "")
        lines.append([method, *cells])
    print("\nMedian wall time of a study in seconds, one thread, on a machine that others used too\n")
    print(table(["method", *PROBLEMS], lines))


def report(rows: Rows) -> None:
    """Print all tables, and end with the figures as `RESULT` lines."""
    for settings in sorted({row["on"] for row in rows.values()}):
        print(settings)
    print("\nFinal loss over that of the hindsight schedule +- standard error (seeds where not all are there);")
    print("budget in units of T; lines of the user's code\n")
    ratios = print_ratios(rows)
    for ours, budgets in (("horizon 5", (5,)), ("horizon 2.3", (2, 2.3)), ("horizon 2.3", (5,))):
        peers = [name for name, method in METHODS.items() if method.budget in budgets and method.code != "horizon"]
        means = print_paired(rows, ours, peers)
        if METHODS[ours].budget in budgets:
            print_bars(ours, ratios, means)
    print_aside(rows)
    print_seconds(rows)
    with_exploits = [row for row in rows.values() if "exploits" in row]
    exploits, obeyed = (sum(row[key] for row in with_exploits) for key in ("exploits", "obeyed"))
    studies = len(with_exploits)
    print(f"\nRay: {obeyed} of {exploits} exploits trained on at the rate that was asked for, in {studies} studies")
    print_results()
