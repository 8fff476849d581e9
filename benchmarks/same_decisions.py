"""Claim: a change of the code does not change a decision. Records studies at two commits and compares them.

    python -m benchmarks.same_decisions 5413179            # that commit beside the working tree
    python -m benchmarks.same_decisions 5413179 main

Each study runs a training that writes down what it is asked to do: from which weights, over which steps, at which
rates, to which weights. Nothing of the package's internals is read, so the records of any two versions compare. One
study is begun by the first commit, interrupted, and finished by the second: journals of one version are continued by
the next. Equal records mean equal decisions, and equal weights to the last bit.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]


def digest(*arrays: Any) -> str:
    """A name for numbers: equal where all bits are."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(np.asarray(array)).tobytes())
    return whole.hexdigest()[:12]


def digest_of_state(state: Any) -> str:
    """The same for everything in a state that is a tensor, in the order of its names."""
    found = list[Any]()

    def walk(node: Any) -> None:
        if isinstance(node, torch.Tensor):
            found.append(node.detach().cpu().float().numpy())
        elif isinstance(node, dict):
            for key in sorted(node, key=str):
                walk(node[key])
        elif isinstance(node, list | tuple):
            for item in node:
                walk(item)

    walk(state)
    return digest(*found)


class Noted:
    """A training that writes a line for each interval it is asked for, from whatever process it runs in."""

    def __init__(self, make: Callable[[], Any], log: str, *, breaks: "Callable[[float, int], str]" = lambda r, s: ""):
        self.training, self.log, self.breaks = make(), log, breaks

    def advance(self, schedule: Any, stop: int) -> Iterator[Any]:
        start = self.training.state_dict()["done"]
        begun = digest_of_state(self.training.state_dict()["model"])
        rates = [float(schedule(t)) for t in range(start, stop)]
        for step, value in self.training.advance(schedule, stop):
            trouble = self.breaks(max(rates), step)
            if trouble == "raise":
                raise ValueError(f"broken at {step}")
            yield step, dict.fromkeys(value, float("nan")) if trouble == "nan" else value
        ended = digest_of_state(self.training.state_dict()["model"])
        line = f"{start}-{stop} rates {digest(rates)} from {begun} to {ended}\n"
        file = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line.encode())
        os.close(file)

    def state_dict(self) -> dict[str, Any]:
        return self.training.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.training.load_state_dict(state)

    def reseed(self, seed: int) -> None:
        self.training.reseed(seed)


def network() -> Any:
    """A small network with dropout, momentum, a loader that shuffles and data to judge it by."""
    import paceline

    torch.manual_seed(0)
    x = torch.randn(768, 12)
    y = (x[:, 0] * x[:, 1] + 0.3 * x[:, 2] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 2))

    def loss(model: Any, batch: Any) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])

    return paceline.TorchTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        batches=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:512], y[:512]), 32, shuffle=True),
        loss=loss,
        evaluate=lambda model: loss(model, (x[512:], y[512:])),
        every=10,
    )


def accuracy() -> Any:
    """The same network without `evaluate`, by the losses of its batches."""
    training = network()
    training.evaluate = None
    return training


def quadratic(noise: float = 1.0, seed: int = 0) -> Any:
    from paceline.problems import Quadratic, QuadraticTraining

    return QuadraticTraining(Quadratic(noise=noise, dims=20), seed)


def above(bound: float, trouble: str, rate: float, step: int) -> str:
    return trouble if rate > bound and step > 5 else ""


def hopeless_from(step: int, bound: float, rate: float, now: int) -> str:
    return "nan" if now > step and rate > bound else ""


class StopError(Exception):
    pass


def studies(log: str, folder: Path) -> "dict[str, Callable[[], Any]]":
    """The studies by name; each returns what it came to."""
    import paceline
    from paceline import Dynamic

    def one(make: Callable[[], Any], breaks: Any = None, **settings: Any) -> dict[str, Any]:
        noted = partial(Noted, make, log, **({"breaks": breaks} if breaks else {}))
        settings = {"steps": 400, "lr": (1e-3, 1.0), "seed": 3, **settings}
        try:
            result = paceline.tune(noted, **settings)
        except paceline.PacelineError as error:
            return {"error": type(error).__name__, "text": str(error)[:60]}
        return {
            "value": repr(result.value),
            "rates": digest(result.schedule.multipliers, result.schedule.change_points),
            "weights": digest_of_state(result.weights()),
        }

    def interrupted(resume: bool, where: Path) -> dict[str, Any]:
        """Stopped after so many observations, and continued."""
        count = 0

        def stop(fork: int, step: int) -> None:
            nonlocal count
            count += 1
            if count == 90:
                raise StopError

        if not resume:
            try:
                one(network, cost=2.3, study=where, on_step=stop)
            except StopError:
                return {"stopped": True}
        return one(network, cost=2.3, study=where)

    def family() -> dict[str, Any]:
        tasks = {f"noise {s}": partial(Noted, partial(quadratic, s), log) for s in (0.5, 1.0, 2.0)}
        settings = {"steps": 200, "lr": (0.01, 1.5), "intervals": 3, "budget": 8, "batch": 2, "seed": 1}
        study = paceline.tune_tasks(tasks, study=folder / "family", **settings)
        return {
            name: [repr(answer.median), digest(answer.schedule.multipliers)] for name, answer in study.answers.items()
        }

    def warm(**settings: Any) -> dict[str, Any]:
        make = partial(Noted, partial(quadratic, 1.4, 5), log)
        result = paceline.warm_start(folder / "family", make, seed=2, **settings)
        return {
            "value": repr(result.value),
            "rates": digest(result.schedule.multipliers),
            "weights": digest_of_state(result.weights()),
        }

    def by_hand() -> dict[str, Any]:
        tuner = paceline.Tuner(lr=(1e-4, 1e-1), steps=400, cost=2.3, seed=1)
        asked = []
        while (todo := tuner.ask()) is not None:
            for p in todo:
                steps = range(p.start + 1, p.stop + 1)
                rate = p.schedule.multipliers[-1]
                asked.append(f"{p.fork} {p.parent} {p.start} {p.stop} {digest(p.schedule.multipliers)}")
                if rate > 0.08:
                    tuner.fail(p, "too high")
                else:
                    tuner.tell(p, steps, {"averaged": [1.0 + abs(rate - 0.01) / t for t in steps]})
        return {"asked": asked, "value": repr(tuner.result.value)}

    def pace() -> dict[str, Any]:
        torch.manual_seed(0)
        model = torch.nn.Linear(10, 1)
        optimizer = torch.optim.SGD(model.parameters())
        scheduler = paceline.PaceLR(optimizer, lr=(1e-5, 1e-1), steps=300)
        rates = []
        for _ in range(300):
            optimizer.zero_grad()
            loss = (model(torch.randn(32, 10)) - 1.0).square().mean()
            loss.backward()
            optimizer.step()
            scheduler.step(loss)
            rates.append(scheduler.get_last_lr()[0])
        return {"rates": digest(rates), "weights": digest_of_state(model.state_dict())}

    def streams() -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return one(network, cost=1.5, runner="streams")

    greedy = partial(one, quadratic, lr=(0.01, 1.9))
    return {
        "horizon, cost 1": lambda: one(network, cost=1),
        "horizon, cost 1, a range that diverges": lambda: one(quadratic, cost=1, lr=(0.05, 50.0)),
        "horizon, cost 1.2": lambda: one(network, cost=1.2),
        "horizon, cost 1.5": lambda: one(network, cost=1.5),
        "horizon, cost 2.3": lambda: one(network, cost=2.3),
        "horizon, cost 2.3, loss of batches": lambda: one(accuracy, cost=2.3),
        "horizon, cost 3.2": lambda: one(network, cost=3.2),
        "horizon, cost 5": lambda: one(network, cost=5),
        "horizon, cost 5, quadratic": lambda: one(quadratic, cost=5, lr=(0.01, 1.9)),
        "horizon, five forks to the end": lambda: one(network, strategy=Dynamic.horizon(forks=5)),
        "greedy": lambda: greedy(strategy=Dynamic.greedy(forks=5, intervals=6)),
        "greedy, each run kept": lambda: greedy(strategy=Dynamic.greedy(forks=3, intervals=5, keep_each=True)),
        "greedy, signed link, failures": lambda: greedy(
            lr=(0.01, 8.0), strategy=Dynamic.greedy(forks=4, intervals=5, link="signed", order=2)
        ),
        "largest is best": lambda: one(network, cost=1.5, mode="max"),
        "a failure: an error above a rate": lambda: one(network, partial(above, 0.3, "raise"), cost=2.3),
        "a failure: not a number above a rate": lambda: one(network, partial(above, 0.3, "nan"), cost=2.3),
        "a rollback": lambda: one(network, partial(hopeless_from, 120, 0.02), cost=2.3),
        "every fork fails": lambda: one(network, partial(above, 0.0, "nan"), cost=1.5),
        "interrupted and continued": lambda: (
            interrupted(False, folder / "cut"),
            interrupted(True, folder / "cut"),
        )[1],
        "begun by one version": lambda: interrupted(False, folder / "begun"),
        "a family": family,
        "a new task": warm,
        "a new task, probed, two forks": lambda: warm(probe=67, forks=2),
        "asked and told by hand": by_hand,
        "PaceLR": pace,
        "runner ray": lambda: one(network, cost=1.5, runner="ray"),
        "runner streams, without a GPU": streams,
    }


def record(folder: Path, only: str = "") -> dict[str, Any]:
    """Run all studies; what each came to, and what its training was asked for, in any order."""
    torch.set_num_threads(1)
    found = dict[str, Any]()
    for name, study in studies("", folder).items():
        if only and only not in name:
            continue
        log = folder / f"{digest(name.encode())}.log"
        came_to = studies(str(log), folder)[name]()
        lines = sorted(log.read_text().splitlines()) if log.exists() else []
        found[name] = {"result": came_to, "intervals": lines}
        print(f"  {name}: {len(lines)} intervals, {came_to}", file=sys.stderr, flush=True)
        del study
    return found


def finish(folder: Path) -> dict[str, Any]:
    """Go on with the study that was begun by another version."""
    torch.set_num_threads(1)
    log = folder / "finished.log"
    log.unlink(missing_ok=True)
    import paceline

    noted = partial(Noted, network, str(log))
    result = paceline.tune(noted, steps=400, lr=(1e-3, 1.0), seed=3, cost=2.3, study=folder / "begun")
    return {"value": repr(result.value), "weights": digest_of_state(result.weights())}


def source_of(commit: str, stack: Path) -> Path:
    """The package's source at a commit; the working tree's own where none is named."""
    if not commit:
        return ROOT / "src"
    target = stack / "source"
    target.mkdir(parents=True)
    whole = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(target)], input=whole.stdout, check=True)
    return target / "src"


def run_with(source: Path, *arguments: str) -> None:
    """This file in a process of its own, with the package from there."""
    paths = os.pathsep.join([str(source), str(ROOT)])
    settings = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, *arguments], check=True, env=settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?")
    parser.add_argument("after", nargs="?", default="")
    parser.add_argument("--only", default="", help="studies whose name has this in it")
    parser.add_argument("--record", metavar="FOLDER", type=Path, help="run all studies, with the package as it is")
    parser.add_argument("--finish", metavar="FOLDER", type=Path, help="go on with what another version has begun")
    given = parser.parse_args()
    if given.record is not None:
        (given.record / "record.json").write_text(json.dumps(record(given.record, given.only), indent=1))
        return
    if given.finish is not None:
        (given.finish / "finished.json").write_text(json.dumps(finish(given.finish)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        stack = Path(temporary)
        found = list[dict[str, Any]]()
        for side, commit in (("before", given.before), ("after", given.after)):
            folder = stack / side / "studies"
            folder.mkdir(parents=True)
            print(f"{side}: {commit or 'the working tree'}", file=sys.stderr)
            run_with(source_of(commit, stack / side), "--record", str(folder), "--only", given.only)
            found.append(json.loads((folder / "record.json").read_text()))
        before, after = found
        if not given.only:
            latest = (stack / "after" / "source" / "src") if given.after else ROOT / "src"
            begun = stack / "before" / "studies"
            run_with(latest, "--finish", str(begun))
            whole = before["horizon, cost 2.3"]["result"]
            ended = json.loads((begun / "finished.json").read_text())
            before["begun by one version, finished by the other"] = {n: whole[n] for n in ("value", "weights")}
            after["begun by one version, finished by the other"] = ended
    differ = [name for name in before if before[name] != after.get(name)]
    for name in before:
        intervals = len(before[name].get("intervals", ()))
        print(f"{'differs' if name in differ else 'equal':8} {name} ({intervals} intervals)")
    print(f"RESULT studies {len(before)}")
    print(f"RESULT different {len(differ)}")
    sys.exit(bool(differ))


if __name__ == "__main__":
    main()
