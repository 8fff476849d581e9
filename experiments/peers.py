"""`horizon` is not more than 2 % behind the best peer on any problem, and ahead of each on average.

Peers from their own packages on the problems of `benchmarks.horizon`: Ray Tune's PBT and PB2, Optuna's TPE with a
Hyperband pruner, Schedule-Free, Prodigy, D-Adaptation and ReduceLROnPlateau. Within a seed all start from the same
weights and have the same data and bounds; all may take the same number of steps (5 T, or 2.3 T where a method can be
run at it); what decides, and counts, is the final loss on the fixed set, as in `benchmarks.horizon`.

`python -m experiments.peers` runs what is missing. `--report` prints the tables of results/peers.jsonl, which are also
in results/peers.txt.
"""

import re
from contextlib import redirect_stdout
from functools import cache
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

from benchmarks._problems import PROBLEMS
from benchmarks._report import machine
from benchmarks._runs import Key, arguments, complete
from experiments._peer_report import METHODS, report

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("ray", "optuna", "schedulefree", "prodigyopt", "dadaptation", "paceline")


@cache
def settings() -> str:
    """Commit, device and versions."""
    return f"{machine()}, " + ", ".join(f"{name} {version(name)}" for name in PACKAGES)


def run(key: Key) -> dict[str, Any]:
    """One study of a tuner, or one run of a method that is none."""
    name, method, seed = key
    problem = PROBLEMS[name]
    if method in ("PBT", "PB2"):
        from experiments._peer_ray import run_population  # starting Ray takes seconds: only where it is used

        row = run_population(problem, seed, method)
    elif method.endswith(", Adam"):
        from experiments._peer_adam import with_adam
        from experiments._peer_search import run_horizon

        row = run_horizon(with_adam(problem), seed, 5)
    elif match := re.fullmatch(r"(horizon|Optuna) ([\d.]+)", method):
        from experiments._peer_search import run_horizon, run_optuna

        row = {"horizon": run_horizon, "Optuna": run_optuna}[match[1]](problem, seed, float(match[2]))
    else:
        from experiments._peer_single import run_once

        row = run_once(problem, method, seed)
    return {**row, "on": settings()}


def main() -> None:
    """Complete the rows and report."""
    options = arguments(__doc__, jobs=1)
    units = list(dict.fromkeys(unit for method in METHODS.values() for unit in method.units))
    problems = [p for p in PROBLEMS.values() if (options.problem == p.name if options.problem else p.counted)]
    asides = [
        (p.name, "horizon 5, Adam", seed) for p in problems if not p.network and p.counted for seed in range(p.seeds)
    ]
    # seed by seed, so that what stands when a run is broken off can be compared
    most = max(p.seeds for p in problems)
    keys = [(p.name, unit, seed) for seed in range(most) for p in problems if seed < p.seeds for unit in units]
    keys = [key for key in [*keys, *asides] if options.only in key[1]]
    path = RESULTS / "peers.jsonl"
    rows = complete(path, keys, run, jobs=0 if options.report else options.jobs, limit=options.limit)
    text = StringIO()
    with redirect_stdout(text):
        report(rows)
    print(text.getvalue(), end="")
    if not (options.only or options.problem):
        (RESULTS / "peers.txt").write_text(text.getvalue())


if __name__ == "__main__":
    main()
