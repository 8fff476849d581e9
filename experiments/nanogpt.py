"""nanoGPT's character model on Tiny Shakespeare: does the default beat the script's own schedule, and six cosines?

The public settings (github.com/karpathy/nanoGPT), on a GPU and on a CPU. Every method starts from the same weights and
sees the same batches within a seed; the weights of its best moment are kept, by one rule: the lowest held-out loss seen
at an observation, of raw or averaged weights. The published figures are such best moments, of raw weights.

- "public": chosen and judged on all of the held-out text, as published.
- "halves": chosen on the first half of the held-out text, judged on the second.

Bars on a GPU, public: cost 2.3 at most 1.450 in the mean and below the best of the six cosines; cost 1 below 1.4697;
ending early changes the result by less than 0.002.

`python -m experiments.nanogpt` runs what is missing for the CPU's setting, `--setting gpu` that of a GPU; it can be
stopped anywhere. `--show` prints the tables of results/nanogpt.jsonl.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import Key, Rows, complete
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
from paceline import Schedule, tune
from paceline.integrations import PaceLR
from paceline.strategy import Strategy, default_strategy
from paceline.study import Event, Report

RESULTS = Path(__file__).parent / "results"
BOUNDS = (1e-5, 1e-1)
PEAKS = (3e-4, 6e-4, 1e-3, 2e-3, 4e-3, 8e-3)  # of the script's schedule; 1e-3 is the script's own
COSTS = (1, 1.5, 2.3, 5)
PROTOCOLS = {"public": ("all", "all"), "halves": ("first half", "second half")}  # the parts that choose and judge
NOT_EARLY = ", to the end"


def studies(setting: Setting) -> dict[str, Strategy]:
    """The methods that run through the loop of forks; those with `NOT_EARLY` show what ending early changes."""
    costs = {f"tune {cost:g}": default_strategy(cost) for cost in COSTS}
    to_the_end = {name + NOT_EARLY: strategy for name, strategy in costs.items()}
    return {**costs, "PBT": PopulationBasedTraining(), **to_the_end}


def single_runs(setting: Setting) -> dict[str, Callable[[int, torch.device], "Moments"]]:
    """The methods that train one run, whatever is observed: one run serves both protocols."""
    cosines = {f"cosine {peak:g}": partial(with_cosine, setting, peak) for peak in PEAKS}
    return {**cosines, "PaceLR": partial(with_pace, setting), "Schedule-Free": partial(with_schedule_free, setting)}


def run(key: Key, device: torch.device) -> dict[str, Any]:
    """One method on one seed: the loss of the weights of its best moment, and how it got there."""
    problem, method, seed = key
    name, _, protocol = problem.partition(", ")
    setting = SETTINGS[name]
    runs = single_runs(setting)
    if method in runs:
        return runs[method](seed, device).rows()
    return study(setting, protocol, method, seed, device)


def study(setting: Setting, protocol: str, method: str, seed: int, device: torch.device) -> dict[str, Any]:
    """What a study returns, judged on all windows of the part that judges."""
    chosen_on, judged_on = PROTOCOLS[protocol]
    steps = list[int]()

    def count(event: Event) -> None:
        if isinstance(event, Report):
            steps.append(event.stop - event.start)

    found = tune(
        partial(make_training, setting, seed, device, HeldOut(chosen_on, setting, device, setting.windows)),
        steps=setting.steps,
        lr=bounds(seed),
        strategy=studies(setting)[method],
        seed=seed,
        early_stop=not method.endswith(NOT_EARLY) and method.startswith("tune"),
        on_event=count,
        quiet=True,
    )
    value = judged(found.weights(), HeldOut(judged_on, setting, device), setting, device)
    row = {"chosen": found.value, "step": found.step, "of": found.value_of, "last": found.last, "value": value}
    return {**row, "cost": sum(steps) / setting.steps}


def bounds(seed: int) -> tuple[float, float]:
    """Four decades, shifted by up to a quarter of one, so that nothing lands on the best peak."""
    shift = 10 ** np.random.default_rng([seed, 77]).uniform(-0.25, 0.25)
    return BOUNDS[0] * shift, BOUNDS[1] * shift


@torch.no_grad()
def judged(weights: dict[str, Any], judge: HeldOut, setting: Setting, device: torch.device) -> float:
    """The loss of these weights."""
    model = language_model(setting, 0).to(device).eval()
    model.load_state_dict(weights)
    return float(judge(model))


class Moments:
    """The best moment of a run for each protocol: the weights at the lowest loss on the part that chooses."""

    def __init__(self, setting: Setting, device: torch.device) -> None:
        self.setting, self.device = setting, device
        self.evaluate = HeldOut("all", setting, device, setting.windows)
        self.found: dict[str, dict[str, Any]] = {protocol: {"chosen": np.inf} for protocol in PROTOCOLS}
        self.weights: dict[str, dict[str, Any]] = {}

    def is_due(self, step: int) -> bool:
        """Whether an observation is due after this step."""
        return step % self.setting.every == 0 or step == self.setting.steps

    @torch.no_grad()
    def observe(self, step: int, model: torch.nn.Module, of: str = "raw") -> None:
        """Evaluate the model, and keep its weights for each protocol for which they are the best so far."""
        model.eval()
        self.evaluate(model)
        for protocol, (chosen_on, _) in PROTOCOLS.items():
            value, found = float(self.evaluate.latest[chosen_on]), self.found[protocol]
            if of == "raw":
                found["last"] = value
            if value < found["chosen"]:
                found |= {"chosen": value, "step": step, "of": of}
                self.weights[protocol] = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        model.train()

    def rows(self) -> dict[str, Any]:
        """For each protocol, its best moment as judged on all windows of the part that judges."""
        for protocol, (_, judged_on) in PROTOCOLS.items():
            judge = HeldOut(judged_on, self.setting, self.device)
            value = judged(self.weights[protocol], judge, self.setting, self.device)
            self.found[protocol] |= {"value": value, "cost": 1.0}
        return {"protocols": self.found}


def with_cosine(setting: Setting, peak: float, seed: int, device: torch.device) -> Moments:
    """The script's schedule at a peak; raw weights, and their average as `tune` keeps it."""
    moments = Moments(setting, device)
    training = make_training(setting, seed, device, None)
    schedule = Schedule.of(script_shape(setting), peak, setting.steps)
    for step, _ in training.advance(schedule, setting.steps):
        for of, model in training.models() if step else ():
            moments.observe(step, model, of)
    return moments


def with_pace(setting: Setting, seed: int, device: torch.device) -> Moments:
    """A loop of one's own with `PaceLR`; raw weights."""
    torch.manual_seed(seed)
    model = language_model(setting, seed).to(device)
    optimizer = torch.optim.AdamW(decay_groups(model), betas=(0.9, 0.99), fused=device.type == "cuda")
    pace = PaceLR(optimizer, bounds(seed), setting.steps, model)
    moments, loss_of = Moments(setting, device), losses_on(device)
    for step, rows in enumerate(endless(setting, device, setting.steps), 1):
        optimizer.zero_grad()
        loss = loss_of(model, rows).mean()
        loss.backward()
        pace.read_gradients()  # before they are clipped
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        pace.step(loss)
        if moments.is_due(step):
            moments.observe(step, model)
    return moments


def with_schedule_free(setting: Setting, seed: int, device: torch.device) -> Moments:
    """Schedule-Free AdamW at its default rate of 0.0025, with the warm-up of 5 % that its authors recommend."""
    from schedulefree import AdamWScheduleFree  # the only method that needs it

    torch.manual_seed(seed)
    model = language_model(setting, seed).to(device)
    optimizer = AdamWScheduleFree(decay_groups(model), warmup_steps=setting.steps // 20)
    moments, loss_of = Moments(setting, device), losses_on(device)
    optimizer.train()
    for step, rows in enumerate(endless(setting, device, setting.steps), 1):
        optimizer.zero_grad()
        loss_of(model, rows).mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        if moments.is_due(step):
            optimizer.eval()
            moments.observe(step, model, "averaged")
            optimizer.train()
    return moments


def endless(setting: Setting, device: torch.device, steps: int) -> Iterator[torch.Tensor]:
    """As many batches as there are steps, pass after pass."""
    batches, count = training_batches(setting, device), 0
    while True:
        for rows in batches:
            if count == steps:
                return
            count += 1
            yield rows


def wanted(name: str, protocols: Sequence[str], seeds: Sequence[int]) -> list[Key]:
    """Every run of the tables: methods of one run once, studies for each protocol."""
    setting = SETTINGS[name]
    keys = [(name, method, seed) for seed in seeds for method in single_runs(setting)]
    for protocol in protocols:
        # the small network without dropout does not turn, and the choice on halves is shown for two costs
        methods = [m for m in studies(setting) if not (name == "cpu" and m.endswith(NOT_EARLY))]
        kept = methods if protocol == "public" else ["tune 1", "tune 2.3"]
        keys += [(f"{name}, {protocol}", method, seed) for seed in seeds for method in kept]
    return keys


def by_protocol(rows: Rows) -> Rows:
    """The rows with those of single runs split into one for each protocol."""
    found: Rows = {}
    for (problem, method, seed), row in rows.items():
        if "protocols" not in row:
            found[problem, method, seed] = row
        for protocol, of_protocol in row.get("protocols", {}).items():
            found[f"{problem}, {protocol}", method, seed] = of_protocol
    return found


def mean_of(rows: Rows, problem: str, method: str, column: str) -> tuple[float, float, int]:
    """Mean over the seeds, its standard error, and how many there are."""
    found = [row[column] for (p, m, _), row in rows.items() if (p, m) == (problem, method)]
    error = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.nan
    return (float(np.mean(found)) if found else np.nan), error, len(found)


def print_table(rows: Rows, name: str, protocol: str) -> None:
    """Every method, best first; then the figures that have bars."""
    setting, problem = SETTINGS[name], f"{name}, {protocol}"
    methods = [*single_runs(setting), *studies(setting)]
    found = {method: mean_of(rows, problem, method, "value") for method in methods}
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
    parser.add_argument("--only", default="", help="only methods whose name matches this regular expression")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--limit", type=float, default=np.inf, help="begin no run after this many seconds")
    parser.add_argument("--show", action="store_true", help="only print the tables of what is there")
    options = parser.parse_args()
    device = torch.device("cuda" if options.setting == "gpu" else "cpu")
    keys = wanted(options.setting, options.protocol, options.seeds)
    keys = [key for key in keys if re.fullmatch(options.only or ".*", key[1])]
    work = partial(run_and_note_machine, device=device)
    jobs = 0 if options.show else options.jobs
    rows = by_protocol(complete(RESULTS / "nanogpt.jsonl", keys, work, jobs=jobs, limit=options.limit))
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


def run_and_note_machine(key: Key, device: torch.device) -> dict[str, Any]:
    """A row, with the machine that it was measured on."""
    where = torch.cuda.get_device_name() if device.type == "cuda" else ""
    return {**run(key, device), "on": f"{where} {machine()}".strip()}


if __name__ == "__main__":
    main()
