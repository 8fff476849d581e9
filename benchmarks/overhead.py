"""What does tuning cost in time? A plain loop beside `tune` at cost 2.3 and beside `PaceLR`, on five kinds of script.

Bars: `tune` takes at most 1.15 times as long as the plain loop for the steps that it takes, and `PaceLR` 1.10 times, or
1.05 on a GPU. Plain loops evaluate ten times, and each study as often as it does by default. On the CPU seconds are
those that the process and its workers computed, so that other work on the machine counts less. On a GPU they are wall
seconds. The ways take turns, and the ratio is the median of those within a turn.

`python -m benchmarks.overhead`, five minutes on two cores; `--device cuda` on a GPU.
"""

import argparse
import gc
import os
import statistics
import time
from collections import defaultdict

import torch

from benchmarks._overhead_scripts import LR, Script, scripts
from benchmarks._report import machine, print_results, result, table
from paceline import tune

COST = 2.3
WAYS = ("plain", "tune", "PaceLR")
PARTS = ("training", "evaluation", "loading", "checkpoint", "decide", "journal")


def clock(device: str) -> float:
    """Seconds computed by this process and by its workers that have ended; wall seconds on a GPU."""
    if device != "cpu":
        torch.cuda.synchronize()
        return time.perf_counter()
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(way: str, script: Script, device: str, parts: dict[str, float]) -> float:
    """Seconds for as many steps as a plain run takes."""
    torch.manual_seed(0)
    began = clock(device)
    if way != "tune":
        script.run(way == "PaceLR")
        gc.collect()  # workers count once they have ended
        return clock(device) - began
    found = tune(script.training, steps=script.steps, lr=LR, cost=COST, quiet=True)
    taken = sum(int(fork.schedule.change_points[-1]) - fork.start for fork in found.history.forks) / script.steps
    for name, seconds in found.seconds.items():
        parts[name] += seconds
    gc.collect()
    return (clock(device) - began) / taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="only scripts whose name contains this")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(machine())
    rows, spent = list[list[object]](), list[list[object]]()
    for name, script in scripts(options.device).items():
        if options.only not in name:
            continue
        turns, parts = defaultdict[str, list[float]](list), defaultdict[str, float](float)
        script.run(False)  # warms up
        for turn in range(options.repeats):
            for way in sorted(WAYS, reverse=bool(turn % 2)):
                turns[way].append(measure(way, script, options.device, parts))
        ratios = {
            way: statistics.median(a / b for a, b in zip(turns[way], turns["plain"], strict=True)) for way in WAYS[1:]
        }
        rows.append([name, script.steps, *(statistics.median(turns[way]) for way in WAYS), *ratios.values()])
        spent.append([name, *(100 * parts[part] / sum(parts.values()) for part in PARTS)])
        for way, ratio in ratios.items():
            result(f"overhead_{options.device}_{way}_{name.replace(' ', '_')}", ratio)
    print(f"seconds of a run on {options.device}; of `tune` at cost {COST}: for as many steps as a run takes")
    print(table(["", "steps", *WAYS, *(f"{way} / plain" for way in WAYS[1:])], rows))
    print("\nwall time of `tune`, %")
    print(table(["", *PARTS], spent))
    print_results()


if __name__ == "__main__":
    main()
