"""The paper's first experiment: the learning rate of a residual network on CIFAR-10, tuned on the fly.

Claim: with `horizon` at cost 2.3 or 5, following the validation error, the network ends within 0.3 points of test
accuracy of the best of 29 fixed schedules (the best on validation). Following the training loss, it ends at or below
the lowest of them. The paper's own algorithm, as `greedy` of 0.1.0 had it, does neither. ResNet-20 for 40 epochs is
where settings were chosen, ResNet-56 for 100 epochs is the result. The claim holds with three seeds each, except for
the training loss of ResNet-56: 0.0012 and 0.0016, against 0.0009 of a cosine. docs/experiments.md says what the results
were measured with. `paper` and the present `greedy` have not been run yet.

`python -m experiments.cifar` runs what is missing on one GPU, several studies at a time, and can be stopped anywhere.
`--show` prints the tables from `experiments/results/cifar/` and draws the figures of docs/experiments.md.
"""

import argparse
import sys
from pathlib import Path

from benchmarks._cifar import stored
from benchmarks._report import print_results, table
from experiments._cifar_results import FOLDER, CifarResults
from experiments._cifar_runs import complete
from experiments._cifar_studies import METHODS, all_units


def show(results: CifarResults) -> None:
    """Print the tables and draw the figures of the finished studies."""
    from experiments import _cifar_figures as figures
    from experiments import _cifar_report as report

    for depth in (20, 56):
        studies = results.of_network(depth)
        if not studies:
            continue
        groups = report.grouped(report.ends(studies))
        print(f"ResNet-{depth}, {studies[0].row['device']}; {studies[0].row['machine']}\n")
        report.print_ends(groups)
        print()
        report.print_bars(groups, depth)
        print()
        header = f"the paper says of its algorithm; here: {report.algorithm_1(groups)}"
        print(table([header, "verdict", "measured"], report.claims(groups, studies)))
        print()
        figures.draw(studies, groups, results.folder, depth)
    print_results()


def main() -> None:
    """Run the studies, or show them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, nargs="+", choices=[20, 56], default=[20, 56], help="only these networks")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="only these seeds")
    parser.add_argument("--method", nargs="+", default=list(METHODS), help="only these methods")
    parser.add_argument("--jobs", type=int, default=4, help="studies at a time")
    parser.add_argument("--limit", type=float, help="stop after this many seconds")
    parser.add_argument("--runs", type=Path, default=Path("runs") / "cifar", help="where studies are while they run")
    parser.add_argument("--results", type=Path, default=FOLDER, help="where finished ones are kept")
    parser.add_argument("--show", action="store_true", help="only print tables and draw figures of finished studies")
    options = parser.parse_args()
    results = CifarResults(options.results)
    if options.show:
        show(results)
        return
    unknown = sorted(set(options.method) - set(METHODS))
    if unknown:
        sys.exit("\n  ".join([f"no such method: {'; '.join(unknown)}. Expected some of:", *METHODS]))
    selected = [
        unit
        for unit in all_units()
        if unit.depth in options.depth and unit.seed in options.seeds and unit.method in options.method
    ]
    if not selected:
        sys.exit("no study of the experiment has this depth, seed and method: `all_units()` lists those there are")
    finished = results.units()
    todo = [unit for unit in selected if unit not in finished]
    if not todo:
        print(f"nothing to run: all {len(selected)} studies are in {results.folder}; --show prints their tables")
        return
    stored()  # ends with a message if the data are missing
    complete(todo, options.runs, results, jobs=options.jobs, limit=options.limit)


if __name__ == "__main__":
    main()
