"""Tables of the CIFAR-10 experiment."""

from collections import defaultdict
from collections.abc import Iterable
from math import comb
from typing import NamedTuple

import numpy as np

from benchmarks._report import result, table
from experiments._cifar_results import StudyRow
from experiments._cifar_studies import ALGORITHM_1, FIXED
from paceline.traces import Schedule

MEASURES = ("training loss", "validation loss", "validation error", "test accuracy")
SIGN = {"training loss": 1, "validation loss": 1, "validation error": 1, "test accuracy": -1}


class End(NamedTuple):
    """The final measures of a run under a fixed schedule, or of the winner of a study.

    `weights` says which weights were chosen, raw or averaged: by a study on the trace that it follows, for a fixed
    schedule those with fewer errors on validation.
    """

    method: str
    seed: int
    cost: float
    weights: str
    values: dict[str, dict[str, float]]

    def value(self, measure: str, weights: str = "raw") -> float:
        """A measure of the raw, of the averaged or of the chosen weights."""
        return self.values[self.weights if weights == "chosen" else weights][measure]


def name_of(schedule: Schedule) -> str:
    """The name of a fixed schedule."""
    settings = schedule.base.to_json()
    factor = f" x{settings['final'] ** 0.1:.2g}" if settings["name"] == "exponential" else ""
    return f"{settings['name'].replace('_', '-')} {schedule.multipliers[-1]:.3g}{factor}"


def ends(studies: Iterable[StudyRow]) -> list[End]:
    """Every run under a fixed schedule, and the winner of every other study."""
    ends = []
    for study in studies:
        row = study.row
        if row["method"] in FIXED:
            names = {interval.fork: name_of(interval.schedule) for interval in study.study.intervals}
            for fork, values in row["ends"].items():
                weights = min(("raw", "averaged"), key=lambda weights: values[weights]["validation error"])
                ends.append(End(names[int(fork)], row["seed"], 1.0, weights, values))
        else:
            values = row["ends"][str(row["winner"])]
            ends.append(End(row["method"], row["seed"], row["cost"], row["weights"], values))
    return ends


def grouped(ends: list[End]) -> dict[str, dict[int, End]]:
    """By method, then by seed."""
    groups = defaultdict[str, dict[int, End]](dict)
    for end in ends:
        groups[end.method][end.seed] = end
    return dict(groups)


def is_fixed(seeds: dict[int, End]) -> bool:
    """Whether a method is one fixed schedule."""
    return next(iter(seeds.values())).cost == 1.0


def mean(seeds: dict[int, End], measure: str, weights: str = "raw") -> float:
    """Over seeds."""
    return float(np.mean([end.value(measure, weights) for end in seeds.values()]))


def best_fixed(groups: dict[str, dict[int, End]], measure: str, weights: str = "raw") -> str:
    """The fixed schedule that is best by a measure."""
    names = [name for name, seeds in groups.items() if is_fixed(seeds)]
    return min(names, key=lambda name: SIGN[measure] * mean(groups[name], measure, weights))


def paired(groups: dict[str, dict[int, End]], one: str, other: str, measure: str, weights: str) -> np.ndarray:
    """Differences on the seeds that both have."""
    seeds = sorted(set(groups[one]) & set(groups[other]))
    return np.array([groups[one][s].value(measure, weights) - groups[other][s].value(measure, weights) for s in seeds])


def grid_cost(groups: dict[str, dict[int, End]], accuracy: float, seed: int) -> float:
    """How many fixed schedules, drawn at random, reach a test accuracy if the best of them on validation is taken.

    Of each schedule the chosen weights count. With n schedules ranked r = 1..n on validation,

    E[accuracy of the best of k] = sum_r C(n - r, k - 1) / C(n, k) accuracy_r.

    The result is NaN if not even all n reach it.
    """
    runs = [seeds[seed] for seeds in groups.values() if is_fixed(seeds)]
    ranked = sorted(runs, key=lambda end: end.value("validation error", "chosen"))
    tested, n = [end.value("test accuracy", "chosen") for end in ranked], len(runs)
    for k in range(1, n + 1):
        chances = [comb(n - r, k - 1) / comb(n, k) for r in range(1, n + 1)]
        if np.dot(chances, tested) >= accuracy:
            return k
    return np.nan


def standard_error(values: np.ndarray) -> float | None:
    """The standard error of the mean; None for a single value."""
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else None


def with_spread(values: list[float], scale: float, digits: int) -> str:
    """The mean, with its standard error if there are several values."""
    scaled = scale * np.array(values)
    error = standard_error(scaled)
    return f"{scaled.mean():.{digits}f}" + ("" if error is None else f" +- {error:.{digits}f}")


def print_ends(groups: dict[str, dict[int, End]]) -> None:
    """Print all methods, best on the test set first; raw / averaged weights."""
    lines = []
    for name, seeds in sorted(groups.items(), key=lambda item: -mean(item[1], "test accuracy")):
        cells = []
        for measure in MEASURES:
            scale, digits = (100, 2) if measure in ("validation error", "test accuracy") else (1, 4)
            texts = [
                with_spread([end.value(measure, weights) for end in seeds.values()], scale, digits)
                for weights in ("raw", "averaged")
            ]
            cells.append(" / ".join(texts))
        cost = np.mean([end.cost for end in seeds.values()])
        lines.append([name, f"{cost:.2f}", len(seeds), *cells])
    print(table(["method", "cost", "seeds", *MEASURES], lines))


def print_bars(groups: dict[str, dict[int, End]], depth: int) -> None:
    """Print the two bars, and what a grid search would cost."""
    lowest, safest = best_fixed(groups, "training loss"), best_fixed(groups, "validation error")
    complete_seeds = set.intersection(
        *(set(seeds) for seeds in groups.values() if is_fixed(seeds))
    )  # seeds with a whole grid
    lines = []
    for name, seeds in groups.items():
        if is_fixed(seeds):
            continue
        ratio = paired(groups, name, lowest, "training loss", "raw")
        gains = {
            weights: 100 * paired(groups, name, safest, "test accuracy", weights)
            for weights in ("raw", "averaged", "chosen")
        }
        if not len(ratio):
            continue
        accuracies = {
            seed: seeds[seed].value("test accuracy", "chosen") for seed in sorted(set(seeds) & complete_seeds)
        }
        costs = [grid_cost(groups, accuracy, seed) for seed, accuracy in accuracies.items()]
        texts = [with_spread(list(gain), 1, 2) for gain in gains.values()]
        lines.append(
            [name, with_spread(list(ratio), 1, 4), *texts, " ".join("none" if np.isnan(c) else f"{c:g}" for c in costs)]
        )
        key = f"resnet{depth}_{name.replace(', ', '_').replace(' ', '_')}"
        result(f"{key}_training_loss_above_best_fixed", float(ratio.mean()))
        result(f"{key}_test_points_above_validation_best", float(gains["raw"].mean()))
    header = ["method", f"training loss above {lowest}", f"test points above {safest}, raw", "averaged", "chosen"]
    print(table([*header, "same from a grid of"], lines))


def verdict(gaps: np.ndarray) -> str:
    """Whether differences are positive: undecided within two standard errors of zero."""
    error = standard_error(gaps)
    if error is not None and abs(gaps.mean()) <= 2 * error:
        return "undecided"
    return ("holds" if gaps.mean() > 0 else "does not hold") + (", one seed" if error is None else "")


def algorithm_1(methods: Iterable[str]) -> str | None:
    """The method that stands for the paper's algorithm, of those that were run."""
    found = set(methods)
    return next((name for name in ALGORITHM_1 if name in found), None)


def claims(groups: dict[str, dict[int, End]], studies: Iterable[StudyRow]) -> list[list[str]]:
    """The paper's claims about its algorithm against our results: raw training loss, on the seeds that both have."""
    subject = algorithm_1(groups)
    if subject is None:
        return []
    above = {
        name: gaps
        for name in groups
        if name != subject and len(gaps := paired(groups, name, subject, "training loss", "raw"))
    }
    constants = [name for name in above if name.startswith("constant")]
    decays = [name for name in above if name.startswith("exponential")]
    lines = []
    if constants:
        best = min(constants, key=lambda name: above[name].mean())
        measured = f"{best} ends {with_spread(list(above[best]), 1, 4)} above"
        lines.append(["beats every constant rate", verdict(above[best]), measured])
    if len(decays) >= 5:
        tuned = {seed: end.value("training loss") for seed, end in groups[subject].items()}
        complete_seeds = sorted(set(tuned).intersection(*(groups[name] for name in decays)))
        lower = np.array(
            [sum(groups[name][s].value("training loss") < tuned[s] for name in decays) for s in complete_seeds]
        )
        holds = f"holds with {sum(lower <= 1)} of {len(lower)} seeds"
        lines.append(["beats all decays but one", holds, f"{', '.join(map(str, lower))} of {len(decays)} end lower"])
        chances = [100 * (1 - comb(len(decays) - n, 5) / comb(len(decays), 5)) for n in lower]
        measured = f"five at random do so {', '.join(f'{chance:.0f}' for chance in chances)} % of the time"
        holds = f"holds with {sum(lower > 0)} of {len(lower)} seeds"
        lines.append(["five decays might outperform it", holds, measured])
    times = [study.row["seconds"] for study in studies if study.row["method"] == subject]
    share = 100 * np.mean([seconds["decide"] / seconds["wall"] for seconds in times])
    holds = "holds" if share < 5 else "does not hold"
    lines.append(["negligible overhead of the tuner", holds, f"{share:.1f} % of the time goes into decisions"])
    for claim, variant in (
        ("duplicating the best beats keeping each run", "keep each"),
        ("d = 20 intervals are better than 10", "d = 10"),
        ("d = 20 intervals are better than 40", "d = 40"),
        ("q = 1 is better than 2", "q = 2"),
        ("q = 1 is better than 3", "q = 3"),
    ):
        name = f"{subject}, {variant}"
        if name in above:
            measured = f"{name}: {with_spread(list(above[name]), 1, 4)} above"
            lines.append([claim, verdict(above[name]), measured])
    return lines
