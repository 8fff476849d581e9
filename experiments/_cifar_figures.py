"""Figures of `experiments.cifar`, from the journals of its studies alone.

`algorithm1`: rates and traces of the paper's algorithm (fig:resnet-learning-rates). `horizon`: the same with `horizon`.
`forecasts`: forecasts at each decision against what happened. `cost`: final measures of all methods against their cost.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from experiments._cifar_report import End, algorithm_1, is_fixed, mean, standard_error
from experiments._cifar_results import StudyRow
from experiments._cifar_studies import EPOCHS
from experiments._style import GREY, OKABE, drawing, save
from paceline.views import ForkView, StudyView

KINDS = {
    "horizon, validation error": (OKABE[0], "o"),
    "horizon, validation loss": (OKABE[5], "v"),
    "horizon, training loss": (OKABE[2], "^"),
    "paper": (OKABE[1], "s"),
    "greedy": ("0.4", "<"),
    "greedy 0.1.0": (OKABE[1], "s"),
    "PBT": (OKABE[3], "D"),
    "PB2": (OKABE[4], "P"),
    "AutoLRS": ("black", "X"),
}
SPIKE = 1.5  # drawn as failed: an interval that ends this many times above its start


def draw(studies: Sequence[StudyRow], groups: dict[str, dict[int, End]], folder: Path, depth: int) -> None:
    """Draw all figures whose studies are finished."""
    first = {study.row["method"]: study for study in studies if study.row["seed"] == 0}
    epoch = studies[0].row["steps"] // EPOCHS[depth]
    with drawing():
        if (subject := algorithm_1(first)) is not None:
            view, fixed = first[subject].study.plot.view, first.get("constant")
            save(tuned(view, fixed, epoch, "training loss of batches"), folder / f"algorithm1_{depth}.png")
            save(forecasts(first[subject], epoch), folder / f"forecasts_{depth}.png")
        if (horizon := first.get("horizon 2.3, validation error")) is not None:
            save(tuned(horizon.study.plot.view, None, epoch, "validation error"), folder / f"horizon_{depth}.png")
        save(costs(groups, depth), folder / f"cost_{depth}.png")


def tuned(view: StudyView, fixed: StudyRow | None, epoch: int, value: str) -> plt.Figure:
    """Traces above rates over one axis of time: forks in colour, the winning run in black."""
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=[3, 2])
    if fixed is not None:
        _draw_constant_rates(top, bottom, fixed, epoch)
    for fork, start, stop in _intervals(view):
        steps, values = _within(view, fork, start, stop)
        failed = fork.state == "failed" or (len(values) > 1 and values[-1] > SPIKE * values[0])
        style = {"color": OKABE[fork.fork % 5], "linewidth": 0.7, "linestyle": "--" if failed else "-"}
        top.plot(np.array(steps) / epoch, values, alpha=0.8, **style)
        at = np.linspace(start, stop - 1, 400)
        bottom.plot(at / epoch, fork.schedule(at), **{**style, "linewidth": 1.2})
    best = view.best
    assert best is not None
    steps, columns = view.whole_run(best.fork)
    top.plot(
        np.array(steps) / epoch, columns[view.weights], color="black", linewidth=1.1, label="the run that came of it"
    )
    at = np.linspace(0, view.steps - 1, 1000)
    bottom.plot(at / epoch, best.schedule(at), color="black", linewidth=1.1)
    top.set(yscale="log", ylabel=value if view.weights == "raw" else f"{value},\naveraged weights")
    lowest, highest = bottom.get_ylim()
    bottom.set(yscale="log", ylabel="learning rate", xlabel="epoch", ylim=(max(lowest, 3e-6), 2 * highest))
    bottom.set_xlim(0, view.steps / epoch)
    top.legend(loc="upper right")
    figure.align_ylabels()
    return figure


def _intervals(view: StudyView) -> list[tuple[ForkView, int, int]]:
    """Each fork with its first and its last step."""
    return [(fork, fork.start, fork.step) for fork in view.forks if fork.step > fork.start]


def _within(view: StudyView, fork: ForkView, start: int, stop: int) -> tuple[list[int], list[float]]:
    """The observations of a fork, after the last one of the run that it was cloned from."""
    steps, columns = view.whole_run(fork.fork)
    column = columns[view.weights]
    before = max((step for step in steps if step <= start), default=start)
    pairs = [(s, v) for s, v in zip(steps, column, strict=True) if before <= s <= stop]
    return [s for s, _ in pairs], [v for _, v in pairs]


def _draw_constant_rates(top: Axes, bottom: Axes, fixed: StudyRow, epoch: int) -> None:
    """Runs at constant rates, dotted."""
    for fork in fixed.study.plot.view.forks:
        top.plot(np.array(fork.steps) / epoch, fork.values["raw"], ":", color=GREY, linewidth=0.8)
        rate = fork.multiplier
        at = (fork.steps[-1] / epoch, fork.values["raw"][-1])
        look = {"fontsize": 6, "color": "0.4", "va": "center", "annotation_clip": False}
        top.annotate(f"{rate:.2g}", at, xytext=(2, 0), textcoords="offset points", **look)
        bottom.axhline(rate, linestyle=":", color=GREY, linewidth=0.8)


def forecasts(study_row: StudyRow, epoch: int) -> plt.Figure:
    """Median and 90 % band of each fork's value at the end of its next interval, and the value observed there."""
    study = study_row.study
    bands = {
        (int(row["fork"]), int(row["steps"][-1])): (row["low"][-1], row["median"][-1], row["high"][-1])
        for decision in study.decisions
        for row in decision.details.get("forecast", [])
    }
    observed = {
        (report.fork, report.stop): report.values["raw"][-1] for report in study.reports if report.failure is None
    }
    keys = sorted(set(bands) & set(observed), key=lambda key: (key[1], key[0]))
    low, median, high = np.array([bands[key] for key in keys]).T
    actual, at = np.array([observed[key] for key in keys]), np.array([stop for _, stop in keys]) / epoch
    inside = (low <= actual) & (actual <= high)
    figure, axis = plt.subplots(figsize=(6.4, 2.8))
    positions = at + np.tile(np.linspace(-0.35, 0.35, 5), len(at))[: len(at)] * (at[-1] - at[0]) / 40
    axis.vlines(positions, low, high, color=OKABE[0], linewidth=1.4, alpha=0.45, label="90 % band of the forecast")
    axis.plot(positions, median, "_", color=OKABE[0], markersize=4, label="median")
    axis.plot(positions, actual, ".", color="black", markersize=3.5, label="what happened")
    axis.set(xlabel="epoch at the end of the interval", ylabel="training loss of batches", yscale="log")
    axis.set_title(f"{inside.sum()} of {len(inside)} within the band")
    axis.legend(ncols=3, loc="upper right")
    return figure


def kind_of(method: str) -> str:
    """Which of `KINDS` a method is; empty for settings that were only tried."""
    if method in KINDS:
        return method
    first, *rest = method.split(", ")
    kind = ", ".join([first.split()[0], *rest])
    return kind if kind in KINDS else ""


def costs(groups: dict[str, dict[int, End]], depth: int) -> plt.Figure:
    """Training loss and test accuracy against cost; fixed schedules as one cloud at cost 1."""
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 3.2))
    tuners = [(kind, seeds) for name, seeds in groups.items() if (kind := kind_of(name))]
    for axis, measure, weights, scale in zip(
        axes, ("training loss", "test accuracy"), ("raw", "chosen"), (1.0, 100.0), strict=True
    ):
        for seeds in filter(is_fixed, groups.values()):
            axis.plot(1.0, scale * mean(seeds, measure, weights), "_", color="0.5", markersize=9)
        for kind, seeds in tuners:
            colour, marker = KINDS[kind]
            values = scale * np.array([end.value(measure, weights) for end in seeds.values()])
            at = seeds[min(seeds)].cost + 0.06 * (list(KINDS).index(kind) - 1)  # beside each other
            style = {"fmt": marker, "color": colour, "markersize": 4.5, "elinewidth": 0.8}
            axis.errorbar(at, values.mean(), standard_error(values), **style)
        axis.set(xlabel="cost: steps of all forks, in runs")
    axes[0].set(yscale="log", ylabel="training loss", title=f"ResNet-{depth}, raw weights")
    axes[1].set(ylabel="test accuracy (%)", title=f"ResNet-{depth}, weights as chosen")
    highest = 100 * max(mean(seeds, "test accuracy", "chosen") for seeds in groups.values())
    lowest = 100 * min(mean(seeds, "test accuracy", "chosen") for _, seeds in tuners)
    axes[1].set_ylim(lowest - 1.0, highest + 0.5)
    shown = {kind for kind, _ in tuners}
    styles = {kind: style for kind, style in KINDS.items() if kind in shown}
    handles = [plt.Line2D([], [], linestyle="", marker=m, color=c, label=kind) for kind, (c, m) in styles.items()]
    handles.append(plt.Line2D([], [], linestyle="", marker="_", color="0.5", label="a fixed schedule"))
    figure.legend(handles=handles, fontsize=7, ncols=4, loc="outside lower center")
    return figure
