"""Claim: fitting time grows no faster than the number of intervals, and memory stays small.

Runs of ten intervals with 39 observations each, drawn from the model; one cold fit per size and link, each in a process
of its own, with 150 inducing points, anchor noise and random effect on. Median of several; memory is what the fit adds
to the process at its peak.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from benchmarks._report import machine, print_results, result, table

SIZES = (100, 400, 2_000, 10_000)


def one(link: str, intervals: int) -> None:
    """Fit once and print seconds, megabytes and observations."""
    from paceline import TraceModel
    from paceline.problems import SyntheticFamily

    rng = np.random.default_rng(0)
    family = SyntheticFamily.of(link, rng)
    warm_up = [family.run(rng.uniform(size=5), rng) for _ in range(2)]
    TraceModel.fit(warm_up, link=link)
    runs = [family.run(rng.uniform(size=10), rng, length=39, every=1) for _ in range(intervals // 10)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    model = TraceModel.fit(runs, link=link)
    seconds = time.perf_counter() - began
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert len(model.segments) == intervals
    print(seconds, added, sum(s.moments.n for s in model.segments))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("LINK", "INTERVALS"))
    options = parser.parse_args()
    if options.one:
        return one(options.one[0], int(options.one[1]))
    print(machine())
    rows = []
    for link in ("linear", "exponential"):
        times: list[float] = []
        for size in SIZES:
            command = [sys.executable, "-m", "benchmarks.fit_growth", "--one", link, str(size)]
            output = [
                [float(x) for x in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]
                for _ in range(options.repeats)
            ]
            seconds, memory, observations = (statistics.median(column) for column in zip(*output, strict=True))
            growth = seconds / times[-1] / (size / SIZES[len(times) - 1]) if times else float("nan")
            times.append(seconds)
            rows.append([link, size, int(observations), seconds, 1e3 * seconds / size, growth, memory])
            result(f"fit_seconds_{link}_{size}", seconds)
        exponent = np.polyfit(np.log(SIZES[1:]), np.log(times[1:]), 1)[0]
        result(f"fit_growth_exponent_{link}", float(exponent))
    header = ["link", "intervals", "observations", "seconds", "ms / interval", "growth / linear", "MB added"]
    print(table(header, rows))
    print_results()
    return None


if __name__ == "__main__":
    main()
