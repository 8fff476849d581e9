"""Forks on a real cluster of two nodes on this machine: what dies, hangs or queues does not change what is found."""

import gc
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import ray
import torch
from ray.cluster_utils import Cluster

from paceline.errors import InputError, TrainingError
from paceline.runner import Ray, Runner
from paceline.study import Dropped, Finished, Interval, read_journal
from paceline.testing import check_runner
from paceline.tuner import Result, tune, tune_tasks
from tests.quick_families import QUICK as QUICK_FAMILY
from tests.runner import faulty

# ray's own: files and processes that it leaves to the garbage collector
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]
ROOT = Path(__file__).parents[2]
SOURCE = str(ROOT / "src")
SETTINGS = {"steps": 80, "lr": (1e-4, 1e-1)}
QUADRATIC = {"steps": 200, "lr": (0.01, 1.5)}
QUICK = {  # a node that is gone is noticed in a second, not in twenty
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 500,
    "health_check_failure_threshold": 2,
    "health_check_timeout_ms": 500,
}


class Machines:
    """Two nodes with a slot each, of which the second can be killed; it is there again when asked for."""

    def __init__(self) -> None:
        size = {"num_cpus": 1, "object_store_memory": 80_000_000}
        self.size = size
        self.cluster = Cluster(
            initialize_head=True, head_node_args={**size, "include_dashboard": False, "_system_config": QUICK}
        )
        self.other = self.cluster.add_node(**size)

    def kill(self) -> None:
        """The second node goes without a word."""
        self.cluster.remove_node(self.other, allow_graceful=False)
        self.other = None

    def both(self) -> "Machines":
        """See that there are two."""
        if self.other is None:
            self.other = self.cluster.add_node(**self.size)
        return self


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machines = Machines()
        try:
            ray.init(address=machines.cluster.address, log_to_driver=False, logging_level="ERROR")
            yield machines
        finally:
            ray.shutdown()
            machines.cluster.shutdown()
            gc.collect()  # ray's open files, here where their warnings are ignored


@pytest.fixture
def machines(cluster: Machines) -> Machines:
    return cluster.both()


def test_it_conforms_to_what_a_runner_must_do(machines: Machines) -> None:
    check_runner("ray")


@contextmanager
def one_thread() -> Iterator[None]:
    """As workers with one CPU do: sums in another order are other numbers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """The undisturbed study, in this process."""
    folder = tmp_path_factory.mktemp("digits")
    with one_thread():
        return tune(faulty.digits, study=folder, **SETTINGS), folder


@pytest.fixture(scope="module")
def quadratic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undisturbed study, in this process."""
    folder = tmp_path_factory.mktemp("quadratic")
    tune(faulty.quadratic, study=folder, **QUADRATIC)
    return folder


def facts(path: Path) -> list[str]:
    """What a study decided and saw, without how long it took."""
    kinds = Interval | Observed | Failed | Dropped | Finished
    return sorted(repr(event) for event in read_journal(path / "journal.jsonl") if isinstance(event, kinds))


def same_weights(one, other) -> bool:
    mine, others = one.weights(), other.weights()
    return mine.keys() == others.keys() and all(torch.equal(mine[name], others[name]) for name in mine)


def on_ray(**settings) -> Callable[..., Runner]:
    return partial(Ray, **{"gpus": 0, **settings})


@pytest.mark.parametrize("stored", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["study", "storage"])
def test_a_node_that_dies_inside_an_interval_changes_nothing(
    stored: bool, machines: Machines, digits: tuple[Result, Path], tmp_path: Path
) -> None:
    doomed, killed = machines.other.node_id, list[float]()
    log = tmp_path / f"{doomed}.log"

    def kill(fork: int, step: int) -> None:
        if step > 8 and not killed and log.exists():  # past the first decisions, when states have moved
            (tmp_path / "hang").touch()
            if log.read_text().endswith("hang\n"):
                killed.append(time.monotonic())
                machines.kill()

    storage = f"file://{tmp_path}/store" if stored else None
    found = tune(
        partial(faulty.HangingDigits, tmp_path, doomed),
        study=tmp_path / "disturbed",
        runner=on_ray(storage=storage),
        on_step=kill,
        **SETTINGS,
    )
    assert killed
    assert log.read_text().endswith("begin\nhang\n")
    whole, folder = digits
    assert facts(tmp_path / "disturbed") == facts(folder)
    assert same_weights(found, whole)
    intervals = [event for event in read_journal(folder / "journal.jsonl") if isinstance(event, Observed)]
    begun = sum(path.read_text().count("begin") for path in tmp_path.glob("*.log"))
    assert begun == len(intervals) + 1  # one was redone, all others were run once


def test_workers_that_die_or_hang_cost_their_interval_and_more_forks_than_slots_queue(
    machines: Machines, quadratic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.runner.ray.jobs.LEAST", 1.0)  # seconds until an interval may count as slow
    seen, began = list[tuple[int, int]](), time.monotonic()
    making = partial(faulty.Troubled, tmp_path)
    tune(making, study=tmp_path / "study", runner=on_ray(), on_step=lambda *at: seen.append(at), **QUADRATIC)
    assert time.monotonic() - began < faulty.HANGS
    assert (tmp_path / "stalled").exists()
    assert (tmp_path / "deaths").read_text() in ("xx", "x")  # two may die in the same moment
    assert facts(tmp_path / "study") == facts(quadratic)  # eight forks on two slots
    assert max(int(line) for line in (tmp_path / "counts").read_text().split()) <= 3  # with one that was just killed
    observed = [event for event in read_journal(quadratic / "journal.jsonl") if isinstance(event, Observed)]
    assert sorted(seen) == sorted((event.fork, step) for event in observed for step in event.steps)


def test_a_fork_that_kills_its_workers_fails_and_the_others_go_on(machines: Machines, tmp_path: Path) -> None:
    making = partial(faulty.Dying, tmp_path, times=1000, above=1.0)
    result = tune(making, study=tmp_path / "study", runner=on_ray(), **QUADRATIC)
    failed = [event for event in read_journal(tmp_path / "study" / "journal.jsonl") if isinstance(event, Failed)]
    assert [event.fork for event in failed] == [7]
    assert failed[0].reason.startswith("this interval cost 3 workers and was given up: ")
    assert (tmp_path / "deaths").read_text() == "xxx"
    assert result.value is not None


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["study", "storage"])
def test_a_worker_that_dies_between_report_and_state_costs_its_interval(
    stored: bool, machines: Machines, quadratic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.runner.ray.pool.Worker", faulty.Vanishing)
    runner = on_ray(storage=str(tmp_path / "store") if stored else None)
    tune(faulty.quadratic, study=tmp_path / "study", runner=runner, **QUADRATIC)
    assert (tmp_path / "study" / "vanished").exists()
    assert facts(tmp_path / "study") == facts(quadratic)


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("stored", [pytest.param(False, marks=pytest.mark.slow), True], ids=["study", "storage"])
def test_a_driver_that_stops_is_continued(stored: bool, machines: Machines, quadratic: Path, tmp_path: Path) -> None:
    left = 11

    def stop(event) -> None:
        nonlocal left
        left -= isinstance(event, Observed)
        if left == 0:
            raise Interrupt

    runner, study = on_ray(storage=str(tmp_path / "store") if stored else None), tmp_path / "study"
    with pytest.raises(Interrupt):
        tune(faulty.quadratic, study=study, runner=runner, on_event=stop, **QUADRATIC)
    if stored:
        assert not list((study / "checkpoints").glob("*"))
        with pytest.raises(InputError, match=r"keeps its checkpoints in .*store, got storage=None: pass storage="):
            tune(faulty.quadratic, study=study, runner=on_ray(), **QUADRATIC)
    result = tune(faulty.quadratic, study=study, runner=runner, **QUADRATIC)
    assert facts(study) == facts(quadratic)
    assert isinstance(result.state, Path)
    assert result.state.exists()
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]


def broken():
    raise ValueError("no such data")


def test_errors_of_the_training_are_those_of_local(machines: Machines, tmp_path: Path) -> None:
    said = list[str]()
    for runner in ("local", on_ray()):
        with pytest.raises(TrainingError, match="the training factory raised ValueError: no such data") as raised:
            tune(broken, runner=runner, **QUADRATIC)
        said.append(str(raised.value))
    assert said[0] == said[1]
    assert re.fullmatch(r"at .*test_ray.py, line \d+", raised.value.__notes__[0])
    tune(faulty.quadratic, study=tmp_path, runner="local", **QUADRATIC)
    with pytest.raises(InputError, match="keeps its checkpoints in its folder, got storage="):
        tune(faulty.quadratic, study=tmp_path, runner=on_ray(storage="elsewhere"), **QUADRATIC)


def test_where_no_worker_can_be_placed_the_user_hears_of_it(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.runner.ray.round.LONE", 1.0)
    needs = r"a fork needs cpus=2, gpus=0, the cluster has 2 CPUs \(.* free\), 0 GPUs"
    with pytest.raises(UserWarning, match=f"no worker has come for 1 s: {needs}"):  # warnings are errors here
        tune(faulty.quadratic, runner=on_ray(cpus=2), **QUADRATIC)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cpus": -1}, "cpus must be a fraction up to 1 or a whole number, got -1"),
        ({"gpus": 1.5}, "gpus must be a fraction up to 1 or a whole number, got 1.5"),
        ({"patience": 1}, "patience must be more than 1, got 1"),
        ({"storage": "nowhere://x"}, "storage='nowhere://x' cannot be used"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        on_ray(**settings)(faulty.quadratic)


def python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_without_ray_the_error_says_what_to_install() -> None:
    code = """
import sys
sys.modules["ray"] = None
from paceline import InputError, tune
try:
    tune(None, steps=200, lr=(0.01, 1.5), runner="ray")
except InputError as error:
    print(error)
"""
    assert python(code) == "runner='ray' needs ray: pip install paceline[ray]\n"


@pytest.mark.parametrize("compared", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["ray", "local"])
def test_the_command_line_runs_forks_of_two_processes_on_a_cluster_of_its_own(compared: bool, tmp_path: Path) -> None:
    ways = {"ray": ["ray", "--address", "local", "--cpus", "2"]}  # not the cluster of this module
    if compared:
        ways["local"] = ["local"]
    tuned = ["tune", "examples.ddp_fork:DistributedTraining", "--steps", "60", "--lr", "1e-4", "1e-1"]
    calls = [[*tuned, "--study", str(tmp_path / name), "--runner", *way] for name, way in ways.items()]
    invoke = f"[print(CliRunner().invoke(app, call).output) for call in {calls!r}]"
    said = python(f"from paceline.cli import app\nfrom typer.testing import CliRunner\n{invoke}")
    assert said.count("its checkpoint: ") == len(ways), said
    assert all(facts(tmp_path / name) == facts(tmp_path / "ray") for name in ways)


@pytest.mark.slow
def test_a_machine_that_can_never_hold_a_fork_is_said_at_once() -> None:
    code = """
from functools import partial
from paceline import InputError, tune
from paceline.problems import digits_training
from paceline.runner import Ray
try:
    tune(digits_training, steps=200, lr=(0.01, 1.5), runner=partial(Ray, address="local", gpus=9999))
except InputError as error:
    print(error)
"""
    assert "a fork needs cpus=1, gpus=9999, and this machine has" in python(code)


def test_a_family_of_tasks_runs_on_a_cluster_as_it_does_here(machines: Machines, tmp_path: Path) -> None:
    quick = {**QUICK_FAMILY, "intervals": 2, "budget": 3, "batch": 2}
    tasks = {"one": faulty.quadratic, "other": partial(faulty.quadratic, noise=0.2)}
    here = tune_tasks(tasks, steps=60, lr=(0.01, 1.5), study=tmp_path / "here", **quick)
    there = tune_tasks(tasks, steps=60, lr=(0.01, 1.5), study=tmp_path / "there", runner=on_ray(), **quick)
    assert there.answers == here.answers
    assert facts(there.path) == facts(here.path)
    kept = {path.name for path in (there.path / "checkpoints").iterdir()}
    assert kept == {f"{best.fork}-60.pt" for best in there.best.values()}
