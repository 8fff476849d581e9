"""Forks on a real cluster of two nodes: whatever dies, hangs or waits, a study observes and decides the same."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

from paceline.errors import InputError
from paceline.runner import Ray, Runner
from paceline.study import Dropped, Finished, Interval, Report, read_journal
from paceline.testing import check_runner
from paceline.tuner import Result, tune, tune_tasks
from tests.quick_families import QUICK as QUICK_FAMILY
from tests.runner.ray import faulty_trainings
from tests.runner.ray.conftest import Machines

# ray's own: files and processes that it leaves to the garbage collector
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]
ROOT = Path(__file__).parents[3]
SOURCE = str(ROOT / "src")
NETWORK = {"steps": 80, "lr": (1e-4, 1e-1)}
QUADRATIC = {"steps": 200, "lr": (0.01, 1.5)}
NEVER = float("inf")


@contextmanager
def one_thread() -> Iterator[None]:
    """As workers with one CPU have: sums in another order are other numbers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """The undisturbed study of a network, in this process."""
    folder = tmp_path_factory.mktemp("network")
    with one_thread():
        return tune(faulty_trainings.network, study=folder, **NETWORK), folder


@pytest.fixture(scope="module")
def quadratic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undisturbed study of a quadratic, in this process."""
    folder = tmp_path_factory.mktemp("quadratic")
    tune(faulty_trainings.quadratic, study=folder, **QUADRATIC)
    return folder


def facts(path: Path) -> list[str]:
    """What a study decided and observed, without how long it took."""
    kinds = Interval | Report | Dropped | Finished
    return sorted(repr(event) for event in read_journal(path / "journal.jsonl") if isinstance(event, kinds))


def reports(path: Path) -> list[Report]:
    return [event for event in read_journal(path / "journal.jsonl") if isinstance(event, Report)]


def same_weights(one: Result, other: Result) -> bool:
    weights, expected = one.weights(), other.weights()
    return weights.keys() == expected.keys() and all(torch.equal(weights[name], expected[name]) for name in weights)


def on_ray(**settings) -> Callable[..., Runner]:
    """A slow machine is no reason for a warning or for a second worker, unless a test is about these."""
    return partial(Ray, **{"gpus": 0, "warn_after": NEVER, "slow_after": NEVER, **settings})


def test_it_conforms_to_what_a_runner_must_do(machines: Machines) -> None:
    check_runner(on_ray())


@pytest.mark.parametrize("stored", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["study", "storage"])
def test_a_node_that_dies_inside_an_interval_changes_nothing(
    stored: bool, machines: Machines, network: tuple[Result, Path], tmp_path: Path
) -> None:
    doomed, is_killed = machines.second.node_id, False
    log = tmp_path / f"{doomed}.log"

    def kill(fork: int, step: int) -> None:
        nonlocal is_killed
        if step > 8 and not is_killed and log.exists():  # after the first decisions, when states have moved
            (tmp_path / "hang").touch()
            if log.read_text().endswith("hang\n"):
                is_killed = True
                machines.kill_second()

    storage = f"file://{tmp_path}/store" if stored else None
    result = tune(
        partial(faulty_trainings.HangingNetwork, tmp_path, doomed),
        study=tmp_path / "disturbed",
        runner=on_ray(storage=storage),
        on_step=kill,
        **NETWORK,
    )
    assert is_killed
    assert log.read_text().endswith("begin\nhang\n")
    undisturbed, folder = network
    assert facts(tmp_path / "disturbed") == facts(folder)
    assert same_weights(result, undisturbed)
    begun = sum(path.read_text().count("begin") for path in tmp_path.glob("*.log"))
    assert begun == len(reports(folder)) + 1  # one interval was run twice, all others once


def test_workers_that_die_or_hang_cost_their_interval_and_more_forks_than_slots_wait(
    machines: Machines, quadratic: Path, tmp_path: Path
) -> None:
    observed = list[tuple[int, int]]()
    tune(
        partial(faulty_trainings.Troubled, tmp_path),
        study=tmp_path / "study",
        runner=on_ray(slow_after=1.0),
        on_step=lambda fork, step: observed.append((fork, step)),
        **QUADRATIC,
    )
    assert (tmp_path / "stalled").exists()
    assert not (tmp_path / "woke").exists()  # a second worker did not wait for the one that hung
    assert (tmp_path / "deaths").read_text() in ("xx", "x")  # two may die in the same moment
    assert facts(tmp_path / "study") == facts(quadratic)  # eight forks in two slots
    assert max(int(line) for line in (tmp_path / "counts").read_text().split()) <= 3  # with one that was just killed
    expected = [(report.fork, step) for report in reports(quadratic) for step in report.steps]
    assert sorted(observed) == sorted(expected)


def test_a_fork_that_kills_its_workers_fails_and_the_others_go_on(machines: Machines, tmp_path: Path) -> None:
    factory = partial(faulty_trainings.Dying, tmp_path, times=1000, above=1.0)
    result = tune(factory, study=tmp_path / "study", runner=on_ray(), **QUADRATIC)
    (failed,) = (report for report in reports(tmp_path / "study") if report.failure is not None)
    assert failed.fork == 7
    assert failed.failure is not None
    assert failed.failure.kind == "lost"
    assert failed.failure.message.startswith("3 workers died during this interval: ")
    assert (tmp_path / "deaths").read_text() == "xxx"
    assert result.value is not None


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["study", "storage"])
def test_a_worker_that_dies_between_report_and_state_costs_its_interval(
    stored: bool, machines: Machines, quadratic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.runner.ray.pool.Worker", faulty_trainings.Vanishing)
    runner = on_ray(storage=str(tmp_path / "store") if stored else None)
    study = tmp_path / "study"
    tune(
        faulty_trainings.quadratic,
        study=study,
        runner=runner,
        on_step=lambda fork, step: (study / f"seen-{fork}-{step}").touch(),
        **QUADRATIC,
    )
    assert (study / "vanished").exists()
    assert facts(study) == facts(quadratic)


class Interrupt(BaseException):
    pass


@pytest.mark.parametrize("stored", [pytest.param(False, marks=pytest.mark.slow), True], ids=["study", "storage"])
def test_a_study_that_stops_is_continued(stored: bool, machines: Machines, quadratic: Path, tmp_path: Path) -> None:
    remaining = 11

    def stop(event) -> None:
        nonlocal remaining
        remaining -= isinstance(event, Report)
        if remaining == 0:
            raise Interrupt

    runner, study = on_ray(storage=str(tmp_path / "store") if stored else None), tmp_path / "study"
    with pytest.raises(Interrupt):
        tune(faulty_trainings.quadratic, study=study, runner=runner, on_event=stop, **QUADRATIC)
    if stored:
        assert not list((study / "checkpoints").glob("*"))
        with pytest.raises(InputError, match=r"keeps its checkpoints in .*store, got storage=None: pass storage="):
            tune(faulty_trainings.quadratic, study=study, runner=on_ray(), **QUADRATIC)
    result = tune(faulty_trainings.quadratic, study=study, runner=runner, **QUADRATIC)
    assert facts(study) == facts(quadratic)
    assert isinstance(result.state, Path)
    assert result.state.exists()
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]


def broken():
    raise ValueError("no such data")


def test_errors_of_the_training_are_those_of_local(machines: Machines, tmp_path: Path) -> None:
    raised = list[ValueError]()
    for runner in ("local", on_ray()):
        with pytest.raises(ValueError, match="no such data") as caught:
            tune(broken, runner=runner, **QUADRATIC)
        raised.append(caught.value)
    assert [type(error) for error in raised] == [ValueError, ValueError]
    assert raised[0].__notes__ == raised[1].__notes__ == ["paceline: the training factory raised this"]
    assert re.search(r'test_runner.py", line \d+, in broken', str(raised[1].__cause__))


def test_a_mistake_in_the_training_comes_back_with_the_traceback_of_its_node(
    machines: Machines, tmp_path: Path
) -> None:
    with pytest.raises(KeyError, match="label") as raised:
        tune(partial(faulty_trainings.Mistaken, tmp_path), runner=on_ray(), study=tmp_path / "study", **QUADRATIC)
    assert 'yield 0, {"image": 1.0}["label"]' in str(raised.value.__cause__)
    assert "make the same call again" in raised.value.__notes__[0]
    assert len((tmp_path / "tries").read_text()) <= 2  # one on each node, begun before the first of them came back
    assert not reports(tmp_path / "study")


def test_where_no_worker_can_be_placed_a_warning_says_why(machines: Machines) -> None:
    resources = r"a fork needs cpus=2, gpus=0, the cluster has 2 CPUs \(.* free\), 0 GPUs"
    with pytest.raises(UserWarning, match=f"no worker has come for 1 s: {resources}"):  # warnings are errors here
        tune(faulty_trainings.quadratic, runner=on_ray(cpus=2, warn_after=1.0), **QUADRATIC)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cpus": -1}, "cpus must be a fraction up to 1 or a whole number, got -1"),
        ({"gpus": 1.5}, "gpus must be a fraction up to 1 or a whole number, got 1.5"),
        ({"patience": 1}, "patience must be more than 1, got 1"),
        ({"warn_after": -1.0}, "warn_after must be a number of seconds, 0 or more, got -1"),
        ({"storage": "nowhere://x"}, "storage='nowhere://x' cannot be used"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        on_ray(**settings)(faulty_trainings.quadratic)


def python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout + process.stderr


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
    arguments = {"ray": ["ray", "--address", "local", "--cpus", "2"]}  # not the cluster of the other tests
    if compared:
        arguments["local"] = ["local"]
    tuned = ["tune", "examples.ddp_fork:DistributedTraining", "--steps", "60", "--lr", "1e-4", "1e-1"]
    calls = [[*tuned, "--study", str(tmp_path / name), "--runner", *runner] for name, runner in arguments.items()]
    invoke = f"[print(CliRunner().invoke(app, call).output) for call in {calls!r}]"
    output = python(f"from paceline.cli import app\nfrom typer.testing import CliRunner\n{invoke}")
    assert output.count("its checkpoint: ") == len(arguments), output
    assert all(facts(tmp_path / name) == facts(tmp_path / "ray") for name in arguments)


@pytest.mark.slow
def test_a_machine_that_can_never_run_a_fork_is_refused_at_once() -> None:
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
    settings = {**QUICK_FAMILY, "intervals": 2, "budget": 3, "batch": 2, "steps": 60, "lr": (0.01, 1.5)}
    tasks = {"one": faulty_trainings.quadratic, "other": partial(faulty_trainings.quadratic, noise=0.2)}
    here = tune_tasks(tasks, study=tmp_path / "here", **settings)
    there = tune_tasks(tasks, study=tmp_path / "there", runner=on_ray(), **settings)
    assert there.answers == here.answers
    assert facts(there.path) == facts(here.path)
    kept = {path.name for path in (there.path / "checkpoints").iterdir()}
    assert kept == {f"{best.fork}-60.pt" for best in there.best.values()}
