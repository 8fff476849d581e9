"""Figures of `experiments.mnist`, after those of the paper's sections 2 and 4, from its results alone.

`traces_*`: runs and their forecasts (fig:multiresults). `embedding`: where tasks lie (fig:multiresultslatent).
`surfaces`: the fitted latent functions (fig:model). `formatting`: how traces become data of the latent processes
(fig:formatting). Models are fitted again to the runs of the studies.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from torch.nn.functional import softplus

from experiments._mnist_families import FamilyStudy
from experiments._mnist_results import BOUNDS, FOLDER, INTERVALS, rows, space
from experiments._style import GREY, OKABE, drawing, save
from experiments._svgp import PAIRS, STEPS
from paceline import TraceModel
from paceline.model import hermite, tensor
from paceline.tuner import load_family

COLOUR = dict(zip(PAIRS, OKABE, strict=False))
VALUE, DRAWS = "$-$ELBO$/N$ (nats)", 12


def draw() -> None:
    """Draw all figures whose results exist."""
    with drawing():
        for bounds, model in (("paper", "paper"), ("wide", "ours")):
            study = FamilyStudy(bounds, model, 0)
            if study.is_finished and (fresh := _fresh(study)):
                fitted = _fitted(study)
                save(traces(study, fitted, fresh), FOLDER / f"traces_{bounds}_{model}.png")
                if model == "paper":
                    save(surfaces(fitted, "2/3"), FOLDER / "surfaces.png")
                    save(formatting(study), FOLDER / "formatting.png")
        families = [FamilyStudy("paper", model, seed) for model in ("paper", "ours") for seed in range(3)]
        studies = [study for study in families if study.is_finished]
        if studies:
            save(embeddings(studies), FOLDER / "embedding.png")


def _fitted(study: FamilyStudy) -> TraceModel:
    family, runs = load_family(study.folder)
    return family.fit(runs)


def _fresh(study: FamilyStudy) -> dict[str, dict[str, Any]]:
    """One fresh run of each task's answer."""
    key = (study.bounds, study.seed, study.model)
    own = [row for row in rows("fresh") if (row["bounds"], row["seed"], row["method"]) == key]
    return {task: next(row for row in own if row["task"] == task) for task in PAIRS} if own else {}


def traces(study: FamilyStudy, model: TraceModel, fresh: dict[str, dict[str, Any]]) -> plt.Figure:
    """Random schedules above, recommended ones below: runs in black, forecasts in colour, rates in grey."""
    others = [r for r in rows("random") if r["bounds"] == study.bounds and r["seed"] != study.seed]
    random = {task: next(r for r in others if r["task"] == task) for task in PAIRS}
    figure, axes = plt.subplots(2, len(PAIRS), figsize=(7.4, 3.5), sharex=True, sharey=True)
    for i, (label, runs) in enumerate((("random schedules", random), ("schedules found", fresh))):
        for axis, (task, run) in zip(axes[i], runs.items(), strict=True):
            right = _rates(axis, study.bounds, run["x"])
            right.set_yticklabels([]) if task != list(runs)[-1] else right.set_ylabel("learning rate", color=GREY)
            steps = np.arange(10, STEPS + 1, 10)
            forecast = model.forecast(space(study.bounds).schedule(run["x"]), steps, task=task, noise=False)
            low, high = forecast.band(0.9)
            axis.fill_between(steps, low, high, color=COLOUR[task], alpha=0.22, lw=0)
            axis.plot(steps, forecast.draws[:DRAWS].T, color=COLOUR[task], lw=0.4, alpha=0.7)
            axis.plot(steps, forecast.median, color=COLOUR[task], lw=2.2)
            axis.plot(run["steps"], run["values"], color="black", lw=0.9)
            axis.set_yscale("log")
            axis.set_title(f"{task.replace('/', ' against ')}" if i == 0 else "")
            axis.set_xticks([0, 500, 1000])
            if i:
                axis.set_xlabel("iteration")
        axes[i, 0].set_ylabel(f"{label}\n{VALUE}")
    values = np.concatenate([run["values"] for runs in (random, fresh) for run in runs.values()])
    axes[0, 0].set_ylim(values.min() / 1.25, values.max() * 1.25)
    axes[0, 0].set_yticks([t for t in (0.05, 0.1, 0.2, 0.5, 1.0) if values.min() / 1.25 < t < values.max() * 1.25])
    axes[0, 0].yaxis.set_major_formatter("{x:g}")
    axes[0, 0].yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    return figure


def _rates(axis: Axes, bounds: str, x: Sequence[float]) -> Axes:
    """Draw the rates of a schedule in the background."""
    right = axis.twinx()
    edges = np.linspace(0, STEPS, INTERVALS + 1)
    right.stairs(space(bounds).schedule(x).multipliers, edges, color=GREY, lw=1.0, baseline=None)
    low, high = BOUNDS[bounds]
    right.set_yscale("log")
    right.set_ylim(low / 1.4, high * 1.4)
    right.set_yticks(10.0 ** np.arange(round(np.log10(low)), round(np.log10(high)) + 1))
    right.minorticks_off()
    right.tick_params(colors=GREY, width=0.6)
    right.spines["right"].set_visible(False)
    axis.set_zorder(right.get_zorder() + 1)
    axis.patch.set_visible(False)
    return right


def embeddings(studies: Sequence[FamilyStudy]) -> plt.Figure:
    """Where each task lies in each study. The axes have different scales: the second is much narrower."""
    columns = sum(study.model == studies[0].model for study in studies)
    lines = -(-len(studies) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(6.4, 1.7 * lines), sharex=True, sharey=True, squeeze=False)
    for axis, study in zip(axes.ravel(), studies, strict=False):
        locations = study.open().embedding
        for task, mark in zip(PAIRS, "os^Dv", strict=True):
            axis.plot(*locations[task], mark, color=COLOUR[task], ms=5, alpha=0.85, mec="white", mew=0.4, label=task)
        axis.axhline(0, color="0.9", lw=0.6, zorder=0)
        axis.axvline(0, color="0.9", lw=0.6, zorder=0)
        axis.set_title({"paper": "paper's model", "ours": "defaults"}[study.model] + f", seed {study.seed}")
        axis.margins(0.12, 0.4)
    for axis in axes[-1]:
        axis.set_xlabel("$w_1$")
    for axis in axes[:, 0]:
        axis.set_ylabel("$w_2$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", handletextpad=0.1)
    return figure


def surfaces(model: TraceModel, task: str) -> plt.Figure:
    """Mean and deviation of phi(f_1) and phi(f_2) over start value and rate."""
    encoder = model.encoder
    inputs = encoder.inputs(model.segments)[:, 0]
    values, x = np.linspace(float(inputs.min()), float(inputs.max()), 25), np.linspace(0, 1, 25)
    mean, variance = model.latent_grid(values, x, task)
    nodes, weights = hermite(20)
    phi = softplus(mean[..., None] + variance.sqrt()[..., None] * nodes)
    centre = phi @ weights
    deviation = ((phi - centre[..., None]).square() @ weights).sqrt()
    starts, rates = np.meshgrid(encoder.to_user(tensor(values)), np.log10(encoder.scaling.lr_range.from_unit(x)))
    figure = plt.figure(figsize=(7.0, 3.0), layout="none")
    names = (
        ("$\\phi(f_1)$: increment (nats)", encoder.scaling.scale),
        ("$\\phi(f_2)$: decay rate (per interval)", 1.0),
    )
    for i, (name, unit) in enumerate(names):
        axis: Any = figure.add_axes((0.0 + 0.49 * i, 0.02, 0.48, 0.96), projection="3d")
        z, spread = unit * centre[i].numpy().T, unit * deviation[i].numpy().T
        axis.plot_surface(starts, rates, z, color=OKABE[i], alpha=0.75, lw=0, rcount=25, ccount=25)
        for side in (-1, 1):
            around = np.maximum(z + side * spread, 0)
            axis.plot_wireframe(starts, rates, around, color=GREY, lw=0.4, rcount=12, ccount=12)
        axis.set_xlabel("start value $Y_k$", labelpad=-4)
        axis.set_ylabel("learning rate", labelpad=-2)
        low, high = np.log10(BOUNDS["paper"])
        axis.set_yticks(np.arange(low, high + 0.5), [f"$10^{{{int(t)}}}$" for t in np.arange(low, high + 0.5)])
        axis.tick_params(pad=-2, labelsize=7)
        axis.set_title(name, y=0.98)
        axis.view_init(elev=24, azim=-130)
        for pane in (axis.xaxis, axis.yaxis, axis.zaxis):
            pane.set_pane_color((1, 1, 1, 0))
            pane._axinfo["grid"]["linewidth"] = 0.3
    return figure


def formatting(study: FamilyStudy) -> plt.Figure:
    """Four traces with their rates, one interval's notation, and the locations of all intervals."""
    chosen = [row for row in rows("random") if row["bounds"] == study.bounds and row["task"] == "2/3"][:4]
    figure = plt.figure(figsize=(7.4, 2.9))
    parts = figure.add_gridspec(2, 3, height_ratios=(2, 1))
    top, low = figure.add_subplot(parts[0, 0]), figure.add_subplot(parts[1, 0])
    middle, right = figure.add_subplot(parts[:, 1]), figure.add_subplot(parts[:, 2])
    edges = np.linspace(0, STEPS, INTERVALS + 1)
    for row, colour in zip(chosen, OKABE, strict=False):
        rates = space(study.bounds).schedule(row["x"]).multipliers
        starts = np.interp(edges[:-1], row["steps"], row["values"])
        top.plot(row["steps"], row["values"], color=colour, lw=1.2)
        top.plot(edges[:-1], starts, "o", color=colour, ms=2.5)
        low.stairs(rates, edges, color=colour, lw=1.2, baseline=None)
        right.plot(starts, rates, "o", color=colour, ms=4)
    top.set(ylabel=VALUE, xticks=edges, xticklabels=[])
    low.set(yscale="log", ylabel="rate", xlabel="iteration", xticks=edges)
    for axis in (top, low):
        axis.grid(axis="x", color="0.9", lw=0.6)
    right.set(
        yscale="log", xlabel="start value $Y_k$", ylabel="learning rate $x_k$", title="data of the latent processes"
    )
    top.set_title("traces and rates")
    _notation(middle, chosen[0], study.bounds, OKABE[0])
    return figure


def _notation(axis: Axes, row: dict[str, Any], bounds: str, colour: str) -> None:
    """One interval and its neighbours, named as in the paper."""
    edges, k = np.linspace(0, STEPS, INTERVALS + 1), 1
    steps, values = np.array(row["steps"]), np.array(row["values"])
    shown = (steps >= edges[k] - 100) & (steps <= edges[k + 1] + 100)
    axis.plot(steps[shown], values[shown], "o", color=colour, ms=2.5, alpha=0.8)
    at = np.interp(edges[k : k + 2], steps, values)
    low, high = values[shown].min(), values[shown].max()
    span = high - low
    axis.set_ylim(low - 0.35 * span, high + 0.2 * span)
    for edge, value, name in zip(edges[k : k + 2], at, ("k", "k+1"), strict=True):
        axis.axvline(edge, color="0.8", lw=0.8, zorder=0)
        axis.plot(edge, value, "o", color="black", ms=4)
        axis.annotate(f"$Y_{{{name}}}$", (edge, value), xytext=(5, 5), textcoords="offset points")
    axis.annotate(
        "", (edges[k + 1], low - 0.2 * span), (edges[k], low - 0.2 * span), arrowprops={"arrowstyle": "<->", "lw": 0.7}
    )
    axis.text(edges[k : k + 2].mean(), low - 0.19 * span, "rate $x_k$", ha="center", va="bottom")
    axis.text(
        0.97,
        0.97,
        "$y(t) = Y_k + \\eta(f(Y_k, x_k),\\ t - T_k) + \\varepsilon(t)$",
        ha="right",
        va="top",
        transform=axis.transAxes,
    )
    axis.set_xticks(edges[k : k + 2], ["$T_k$", "$T_{k+1}$"])
    axis.set_yticks([])
    axis.set_title("notation of one interval")
