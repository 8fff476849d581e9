"""The best fixed schedule of each problem, tuned in hindsight on seeds that are not reported.

Eight shapes (six families) at 17 peaks, a quarter of a decade apart, three seeds each; then the best eight of these and
their neighbours at half that distance, on six more seeds. Written to results/hindsight.json, which is committed:
`python -m benchmarks._hindsight` finds it again.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._problems import PROBLEMS
from benchmarks._runs import RESULTS, Key, arguments, complete
from paceline.shapes import Shape, WarmupStableDecay, shape_from_json, shape_of
from paceline.traces import Schedule

SHAPES: dict[str, Shape] = {
    "constant": shape_of("constant"),
    "exponential 0.1": shape_from_json({"name": "exponential", "final": 0.1}),
    "exponential 0.01": shape_from_json({"name": "exponential", "final": 0.01}),
    "cosine": shape_of("cosine"),
    "linear": shape_of("linear"),
    "one_cycle": shape_of("one_cycle"),
    "warmup_stable_decay 0.2": shape_of("warmup_stable_decay"),
    "warmup_stable_decay 0.7": WarmupStableDecay(warmup=0.02, decay=0.7),
}
FILE = RESULTS / "hindsight.json"


def run(key: Key) -> dict[str, Any]:
    """Train once under `shape@decades`, decades from the middle of the problem's bounds."""
    name, method, seed = key
    shape, decades = method.split("@")
    problem = PROBLEMS[name]
    return train(problem.name, SHAPES[shape], problem.middle * 10 ** float(decades), seed)


def train(name: str, base: Shape, peak: float, seed: int) -> dict[str, Any]:
    """One run; final values, or None where it diverged: a loss ten times that after the first steps, or none at all."""
    problem = PROBLEMS[name]
    schedule = Schedule.of(base, peak, problem.steps)
    with np.errstate(all="ignore"):
        values = [value for _, value in problem.make(seed).advance(schedule, problem.steps)]
    raw = np.array([value["raw"] for value in values if isinstance(value, dict)])
    if not np.all(raw < 10 * raw[0]):
        return {"raw": None, "averaged": None}
    return dict(values[-1])  # pyright: ignore


def hindsight(name: str) -> tuple[Shape, float]:
    """Shape and peak of the best fixed schedule."""
    best = json.loads(FILE.read_text())[name]
    return shape_from_json(best["base"]), best["peak"]


def search(path: Path, name: str, jobs: int, limit: float) -> dict[str, Any] | None:
    """The best fixed schedule of one problem; None where time ran out."""
    coarse = [f"{shape}@{d:g}" for shape in SHAPES for d in np.arange(-2, 2.01, 0.25)]
    keys = [(name, method, seed) for method in coarse for seed in (1000, 1001, 1002)]
    rows = complete(path, keys, run, jobs=jobs, limit=limit)
    if any(key not in rows for key in keys):
        return None

    def mean(method: str, seeds: range) -> float:
        values = [rows[name, method, seed]["raw"] for seed in seeds]
        return np.inf if None in values else float(np.mean(values))

    best = sorted(coarse, key=lambda method: mean(method, range(1000, 1003)))[:8]
    split = [(m.split("@")[0], float(m.split("@")[1])) for m in best]
    fine = sorted({f"{shape}@{d + e:g}" for shape, d in split for e in (-0.125, 0, 0.125)})
    more = [(name, method, seed) for method in fine for seed in range(1003, 1009)]
    rows = complete(path, more, run, jobs=jobs, limit=limit)
    if any(key not in rows for key in more):
        return None
    winner = min(fine, key=lambda method: mean(method, range(1003, 1009)))
    shape, decades = winner.split("@")
    peak = PROBLEMS[name].middle * 10 ** float(decades)
    table = {s: min(mean(m, range(1000, 1003)) for m in coarse if m.split("@")[0] == s) for s in SHAPES}
    return {"base": SHAPES[shape].to_json(), "peak": peak, "value": mean(winner, range(1003, 1009)), "families": table}


if __name__ == "__main__":
    options = arguments(__doc__)
    best_of = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in PROBLEMS:
        if name not in best_of and options.problem in ("", name):
            best = search(RESULTS / "hindsight.jsonl", name, options.jobs, options.limit)
            if best is not None:
                best_of[name] = best
                FILE.write_text(json.dumps(best_of, indent=1) + "\n")
    print(json.dumps(best_of, indent=1))
