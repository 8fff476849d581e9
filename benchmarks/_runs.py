"""Finished runs of a comparison, kept as JSON lines, so that a benchmark resumes and its tables can be drawn again."""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch

Key = tuple[str, str, int]  # problem, method, seed
Rows = dict[Key, dict[str, Any]]
RESULTS = Path(__file__).parent / "results"


def arguments(doc: "str | None", jobs: int = 2) -> argparse.Namespace:
    """The options every comparison has."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--jobs", type=int, default=jobs, help="processes at once")
    parser.add_argument("--only", default="", help="only methods whose name contains this")
    parser.add_argument("--problem", default="", help="only this problem")
    parser.add_argument("--limit", type=float, default=np.inf, help="begin no run after this many seconds")
    parser.add_argument("--report", action="store_true", help="only print the tables of what is there")
    return parser.parse_args()


def load(path: Path) -> Rows:
    """What is finished."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return {(row["problem"], row["method"], row["seed"]): row for row in rows}


def complete(
    path: Path, keys: Sequence[Key], run: Callable[[Key], dict[str, Any]], *, jobs: int, limit: float = np.inf
) -> Rows:
    """Run what is missing, each line written as it is finished; long ones should come first."""
    done, began = load(path), time.monotonic()
    todo = [key for key in keys if key not in done] if jobs else []
    os.environ["OMP_NUM_THREADS"] = "1"  # two small networks at once are slowed fifty-fold by more
    with ProcessPoolExecutor(max(1, jobs)) as pool, path.open("a") as file:
        waiting = {pool.submit(_timed, run, key, began + limit): key for key in todo}
        for count, future in enumerate(as_completed(waiting), 1):
            row = future.result()
            if row is None:
                continue
            done[waiting[future]] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"{count}/{len(todo)} {row}", flush=True)
    return done


def _timed(run: Callable[[Key], dict[str, Any]], key: Key, deadline: float) -> dict[str, Any] | None:
    if time.monotonic() > deadline:
        return None
    torch.set_num_threads(1)
    began = time.perf_counter()
    problem, method, seed = key
    row = {"problem": problem, "method": method, "seed": seed, **run(key)}
    return {**row, "seconds": round(time.perf_counter() - began, 2)}


def ratios(rows: Rows, method: str, problem: str, seeds: Sequence[int], of: str) -> tuple[float, float]:
    """Mean final loss over that of the hindsight schedule on the same seeds, and its standard error (paired)."""
    pairs = [(rows.get((problem, method, s)), rows.get((problem, "hindsight", s))) for s in seeds]
    if any(a is None or b is None for a, b in pairs):
        return np.nan, np.nan
    values = np.array([np.inf if a[of] is None else a[of] for a, _ in pairs])  # pyright: ignore
    hindsight = np.array([b["raw"] for _, b in pairs])  # pyright: ignore
    ratio = values.mean() / hindsight.mean()
    error = (
        (values - ratio * hindsight).std(ddof=1) / np.sqrt(len(seeds)) / hindsight.mean() if len(seeds) > 1 else np.nan
    )
    return float(ratio), float(error)


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(values))))
