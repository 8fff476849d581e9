"""nanoGPT's character model on Tiny Shakespeare: does the default beat the script's own schedule, and six cosines?

The public settings (github.com/karpathy/nanoGPT), on a GPU and on a CPU. Every method starts from the same weights and
sees the same batches within a seed; the weights of its best moment are kept, by one rule: the lowest held-out loss seen
at an observation, of raw or averaged weights. The published figures are such best moments, of raw weights.

- "public": chosen and judged on all of the held-out text, as published.
- "halves": chosen on the first half of the held-out text, judged on the second.

Bars on a GPU, public: cost 2.3 at most 1.450 in the mean and below the best of the six cosines; cost 1 below 1.4697;
ending early changes the result by less than 0.002.

`python -m experiments.nanogpt` runs what is missing for the CPU's setting, `--setting gpu` that of a GPU, each seed by
seed; it can be stopped anywhere. `--report` prints the tables of results/nanogpt.jsonl.
"""

import argparse
import json
import time
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import Rows, load
from benchmarks.peers import PopulationBasedTraining
from experiments._nanogpt_training import (
    CLIP,
    SETTINGS,
    HeldOut,
    Setting,
    decay_groups,
    language_model,
    losses_on,
    make_training,
    script_shape,
    training_batches,
)
from paceline import tune
from paceline.integrations import PaceLR
from paceline.strategy import FixedSchedules, Strategy, default_strategy
from paceline.study import Event, Report

RESULTS = Path(__file__).parent / "results"
BOUNDS = (1e-5, 1e-1)
PEAKS = (3e-4, 6e-4, 1e-3, 2e-3, 4e-3, 8e-3)  # of the script's schedule; 1e-3 is the script's own
COSTS = (1, 1.5, 2.3, 5)
PROTOCOLS = {"public": ("all", "all"), "halves": ("first half", "second half")}  # the parts that choose and judge
NOT_EARLY = ", to the end"


def strategies(setting: Setting) -> dict[str, Strategy]:
    """The methods that run through the loop of forks."""
    cosines = {f"cosine {peak:g}": FixedSchedules((script_shape(setting),), peaks=(peak,)) for peak in PEAKS}
    costs = {f"tune {cost:g}": default_strategy(cost) for cost in COSTS}
    to_the_end = {name + NOT_EARLY: strategy for name, strategy in costs.items()}
    return {**cosines, **costs, "PBT": PopulationBasedTraining(), **to_the_end}


def methods(setting: Setting) -> list[str]:
    """All methods of the tables; what comes last is only needed where runs end early."""
    early = [name for name in strategies(setting) if name.endswith(NOT_EARLY)]
    return [*(name for name in strategies(setting) if name not in early), "PaceLR", "Schedule-Free", *early]


def run(setting: Setting, protocol: str, method: str, seed: int, device: torch.device) -> dict[str, Any]:
    """One method on one seed: the loss of the weights of its best moment, and how it got there."""
    chosen_on, judged_on = PROTOCOLS[protocol]
    chooses = HeldOut(chosen_on, setting, device, setting.windows)
    judges = HeldOut(judged_on, setting, device)
    loops = {"PaceLR": with_pace, "Schedule-Free": with_schedule_free}
    if method in loops:
        row, weights = loops[method](setting, seed, device, chooses)
    else:
        row, weights = tuned(setting, method, seed, device, chooses)
    model = language_model(setting, seed).to(device).eval()
    model.load_state_dict(weights)
    with torch.no_grad():
        return {**row, "value": float(judges(model))}


def tuned(
    setting: Setting, method: str, seed: int, device: torch.device, evaluate: HeldOut
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A study."""
    steps = list[int]()

    def count(event: Event) -> None:
        if isinstance(event, Report):
            steps.append(event.stop - event.start)

    found = tune(
        partial(make_training, setting, seed, device, evaluate),
        steps=setting.steps,
        lr=BOUNDS,
        strategy=strategies(setting)[method],
        seed=seed,
        early_stop=not method.endswith(NOT_EARLY) and method.startswith("tune"),
        on_event=count,
    )
    row = {"chosen": found.value, "step": found.step, "of": found.value_of, "last": found.last}
    return {**row, "cost": sum(steps) / setting.steps}, found.weights()


class BestMoment:
    """The weights at the lowest loss that a loop of its own observed."""

    def __init__(self, setting: Setting, evaluate: HeldOut) -> None:
        self.setting, self.evaluate = setting, evaluate
        self.row: dict[str, Any] = {"chosen": np.inf, "of": "raw", "cost": 1.0}
        self.weights: dict[str, Any] = {}

    def is_due(self, step: int) -> bool:
        """Whether an observation is due after this step."""
        return step % self.setting.every == 0 or step == self.setting.steps

    @torch.no_grad()
    def observe(self, step: int, model: torch.nn.Module) -> None:
        """Evaluate, and keep the weights if they are the best so far."""
        model.eval()
        self.row["last"] = float(self.evaluate(model))
        if self.row["last"] < self.row["chosen"]:
            self.row |= {"chosen": self.row["last"], "step": step}
            self.weights = {name: value.clone() for name, value in model.state_dict().items()}
        model.train()


def with_pace(
    setting: Setting, seed: int, device: torch.device, evaluate: HeldOut
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A loop of one's own with `PaceLR`; raw weights."""
    torch.manual_seed(seed)
    model = language_model(setting, seed).to(device)
    optimizer = torch.optim.AdamW(decay_groups(model), betas=(0.9, 0.99))
    pace = PaceLR(optimizer, BOUNDS, setting.steps, model)
    best, loss_of = BestMoment(setting, evaluate), losses_on(device)
    for step, rows in enumerate(endless(setting, device, setting.steps), 1):
        optimizer.zero_grad()
        loss = loss_of(model, rows).mean()
        loss.backward()
        pace.read_gradients()  # before they are clipped
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        pace.step(loss)
        if best.is_due(step):
            best.observe(step, model)
    return best.row, best.weights


def with_schedule_free(
    setting: Setting, seed: int, device: torch.device, evaluate: HeldOut
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Schedule-Free AdamW at its default rate of 0.0025, with the warm-up of 5 % that its authors recommend."""
    from schedulefree import AdamWScheduleFree  # the only method that needs it

    torch.manual_seed(seed)
    model = language_model(setting, seed).to(device)
    warmup = setting.steps // 20
    optimizer = AdamWScheduleFree(decay_groups(model), warmup_steps=warmup)
    best, loss_of = BestMoment(setting, evaluate), losses_on(device)
    optimizer.train()
    for step, rows in enumerate(endless(setting, device, setting.steps), 1):
        optimizer.zero_grad()
        loss_of(model, rows).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        if best.is_due(step):
            optimizer.eval()
            best.observe(step, model)
            optimizer.train()
    return best.row, best.weights


def endless(setting: Setting, device: torch.device, steps: int) -> Any:
    """As many batches as there are steps, pass after pass."""
    batches, count = training_batches(setting, device), 0
    while True:
        for rows in batches:
            if count == steps:
                return
            count += 1
            yield rows


def complete(name: str, protocols: list[str], seeds: list[int], only: str, limit: float) -> Rows:
    """Run what is missing, seed by seed, each row written as it is finished."""
    path, setting, began = RESULTS / "nanogpt.jsonl", SETTINGS[name], time.monotonic()
    device = torch.device("cuda" if name == "gpu" else "cpu")
    rows = load(path)
    for seed in seeds:
        for protocol in protocols:
            for method in methods(setting):
                key = (f"{name}, {protocol}", method, seed)
                if key in rows or only not in method or time.monotonic() - began > limit:
                    continue
                if name == "cpu" and method.endswith(NOT_EARLY):
                    continue  # the small network without dropout does not turn
                start = time.perf_counter()
                found = run(setting, protocol, method, seed, device)
                row = {"problem": key[0], "method": method, "seed": seed, **found}
                rows[key] = {**row, "seconds": round(time.perf_counter() - start, 1), "on": machine()}
                with path.open("a") as file:
                    file.write(json.dumps(rows[key]) + "\n")
                print(rows[key], flush=True)
    return rows


def mean_of(rows: Rows, problem: str, method: str, column: str) -> tuple[float, float, int]:
    """Mean over the seeds, its standard error, and how many there are."""
    found = [row[column] for (p, m, _), row in rows.items() if (p, m) == (problem, method)]
    error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.nan
    return (float(np.mean(found)) if found else np.nan), error, len(found)


def print_table(rows: Rows, name: str, protocol: str) -> None:
    """Every method, best first; then the figures that have bars."""
    setting, problem = SETTINGS[name], f"{name}, {protocol}"
    found = {method: mean_of(rows, problem, method, "value") for method in methods(setting)}
    found = {method: numbers for method, numbers in found.items() if numbers[2]}
    if not found:
        return
    lines = []
    for method, (value, error, seeds) in sorted(found.items(), key=lambda item: item[1][0]):
        label = f"{method} (the script's own)" if method == "cosine 0.001" else method
        others = [mean_of(rows, problem, method, column)[0] for column in ("last", "step", "cost")]
        last, step, cost = others
        lines.append([label, f"{value:.4f} +- {error:.4f}", f"{step:,.0f}", f"{last:.4f}", f"{cost:.2f}", str(seeds)])
    chosen, judged = PROTOCOLS[protocol]
    print(f"\n{problem}: weights chosen on {chosen}, judged on {judged} of the held-out text; ")
    print(f"published {setting.published} (chosen and judged on all)\n")
    print(table(["method", "best moment", "at step", "at the end", "cost", "seeds"], lines))
    cosines = [found[method][0] for method in found if method.startswith("cosine")]
    if cosines:
        result(f"nanogpt_{name}_{protocol}_best_cosine", min(cosines))
    for method, (value, _, _) in found.items():
        if method.startswith("tune"):
            result(f"nanogpt_{name}_{protocol}_{method.replace(' ', '_').replace(',', '')}", value)


def print_early_ends(rows: Rows, name: str, protocol: str) -> None:
    """What ending early saved, and what it changed."""
    problem, lines = f"{name}, {protocol}", []
    for cost in COSTS:
        pairs = [
            (row, rows[problem, f"tune {cost:g}{NOT_EARLY}", seed])
            for (p, m, seed), row in rows.items()
            if (p, m) == (problem, f"tune {cost:g}") and (problem, m + NOT_EARLY, seed) in rows
        ]
        if pairs:
            saved = np.mean([1 - early["cost"] / full["cost"] for early, full in pairs])
            change = max(abs(early["value"] - full["value"]) for early, full in pairs)
            lines.append([f"{cost:g}", f"{100 * saved:.0f} %", f"{change:.4f}", str(len(pairs))])
    if lines:
        print("\nwhat ending early saved of the steps, and the largest change of the result\n")
        print(table(["cost", "saved", "change", "seeds"], lines))


def main() -> None:
    """Complete the rows and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setting", choices=list(SETTINGS), default="cpu", help="which public setting")
    parser.add_argument("--protocol", nargs="+", choices=list(PROTOCOLS), default=list(PROTOCOLS), help="only these")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="only these seeds")
    parser.add_argument("--only", default="", help="only methods whose name contains this")
    parser.add_argument("--limit", type=float, default=np.inf, help="begin no run after this many seconds")
    parser.add_argument("--report", action="store_true", help="only print the tables of what is there")
    options = parser.parse_args()
    seeds = [] if options.report else options.seeds
    rows = complete(options.setting, options.protocol, seeds, options.only, options.limit)
    text = StringIO()
    with redirect_stdout(text):
        for name in SETTINGS:
            for protocol in PROTOCOLS:
                print_table(rows, name, protocol)
                print_early_ends(rows, name, protocol)
        print()
        print_results()
    print(text.getvalue(), end="")
    (RESULTS / "nanogpt.txt").write_text(text.getvalue())


if __name__ == "__main__":
    main()
