"""A worker trains intervals from packed states; here in this process."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from ray import cloudpickle

from paceline.errors import TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner.ray import worker as module
from paceline.runner.ray.errors import PackedError
from paceline.runner.ray.storage import Storage
from paceline.runner.ray.worker import CheckpointActor, Worker
from paceline.study import Interval, Report
from paceline.traces import Schedule
from paceline.training import get_random_state, load_checkpoint, unpack_checkpoint

SCHEDULE = Schedule.constant(0.1, 100)
FIRST = Interval(0, None, 0, 20, SCHEDULE, 1)


def quadratic() -> QuadraticTraining:
    return QuadraticTraining(Quadratic(dims=5), every=5)


def started(factory: Any = quadratic, storage: Storage | None = None, **settings: Any) -> Worker:
    worker = Worker()
    state = settings.pop("random_state", None) or get_random_state()
    worker.start(cloudpickle.dumps(factory), [], torch.get_num_threads(), storage, state, settings.pop("seed", 0))
    return worker


@pytest.fixture(autouse=True)
def on_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(get_node_id=lambda: "a")
    monkeypatch.setattr(module.ray, "get_runtime_context", lambda: context)


def run(worker: Worker, interval: Interval | None, packed: Any = None, **more: Any) -> tuple[list, Report, Any]:
    """The steps, the report and the packed state of an interval."""
    name = "0-0.pt" if interval is None else f"{interval.fork}-{interval.stop}.pt"
    *steps, report, state = worker.run(interval, Path("study") / name, packed, **more)
    return [step for message in steps for step in message], report, state


def state_of(packed: Any) -> dict[str, Any]:
    return unpack_checkpoint(packed, Path("packed"))


def test_an_interval_gives_steps_a_report_and_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MESSAGE_PERIOD", -1.0)
    worker = started()
    _, initial, start = run(worker, None)
    assert (initial.steps, state_of(start)["done"]) == ((), 0)
    steps, report, state = run(worker, FIRST, start)
    alone = quadratic()
    assert dict(alone.advance(SCHEDULE, 20)).keys() == set(steps) == set(report.steps)
    assert np.array_equal(state_of(state)["model"]["theta"].numpy(), alone.theta)


def test_a_worker_continues_the_state_that_it_holds() -> None:
    worker = started()
    _, _, start = run(worker, None)
    _, _, middle = run(worker, FIRST, start)
    second = Interval(0, None, 20, 40, SCHEDULE, 2)
    _, held, _ = run(worker, second)
    _, sent, _ = run(started(), second, middle)
    assert held.failure is None
    assert held.values == sent.values


def test_clones_draw_from_the_seed_of_the_study() -> None:
    _, _, start = run(started(), None)
    _, _, middle = run(started(), FIRST, start)
    clone = Interval(5, 0, 20, 40, SCHEDULE, 2)
    values = [run(started(seed=seed), clone, middle)[1].values for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


def test_steps_come_in_few_messages() -> None:
    worker = started()
    _, _, start = run(worker, None)
    messages = list(worker.run(FIRST, Path("study") / "0-20.pt", start))
    assert sum(isinstance(message, list) for message in messages) <= 2


def test_with_a_storage_the_worker_saves_and_loads_there(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    worker = started(storage=storage)
    run(worker, None)
    _, _, state = run(worker, FIRST)
    assert storage.read("0-20.pt") == state.tobytes()
    _, report, _ = run(started(storage=storage), Interval(0, None, 20, 40, SCHEDULE, 2))
    assert report.failure is None


class UnpicklableError(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("not this one")


class Raising(QuadraticTraining):
    def advance(self, schedule: Schedule, stop: int) -> Iterator:
        yield from super().advance(schedule, min(stop, 10))
        raise UnpicklableError("in the middle")


def test_a_failure_travels_without_its_exception_and_without_a_state() -> None:
    worker = started(lambda: Raising(Quadratic(dims=5), every=5))
    _, _, start = run(worker, None)
    *_, report = worker.run(FIRST, Path("study") / "0-20.pt", start)
    assert isinstance(report, Report)
    assert report.failure is not None
    assert (report.failure.kind, report.failure.message) == ("raised", "UnpicklableError: in the middle")
    assert report.failure.error is None
    assert cloudpickle.loads(cloudpickle.dumps(report)) == report


class Drawing(QuadraticTraining):
    def __init__(self) -> None:
        super().__init__(Quadratic(dims=5), seed=int(torch.randint(1000, ())))


def test_factories_draw_the_same_numbers_on_all_workers() -> None:
    state = get_random_state()
    seeds = {state_of(run(started(Drawing, random_state=state), None)[2])["seed"] for _ in range(3)}
    assert len(seeds) == 1


def broken() -> None:
    raise ValueError("no such data")


def test_errors_while_it_starts_say_where() -> None:
    with pytest.raises(PackedError) as raised:
        started(broken)
    error = raised.value.unpack()
    assert (type(error), str(error)) == (ValueError, "no such data")
    assert f'File "{__file__}", line ' in str(error.__cause__)
    assert 'raise ValueError("no such data")' in str(error.__cause__)
    with pytest.raises(TrainingError, match=r"could not be read on a node .*: install its module there, or let ray"):
        Worker().start(b"no pickle", [], 1, None, get_random_state(), 0)


def test_a_factory_of_a_later_task_that_raises_is_no_failure_of_a_fork() -> None:
    worker = started([quadratic, broken])
    with pytest.raises(PackedError, match="no such data"):
        run(worker, None, task=1)


def test_the_checkpoint_actor_writes_and_reads_the_same_bytes(tmp_path: Path) -> None:
    _, _, state = run(started(), None)
    actor, path = CheckpointActor(), tmp_path / "0-0.pt"
    actor.write(state, path)
    assert load_checkpoint(path)["done"] == 0
    assert actor.read(path).tobytes() == state.tobytes()
    with pytest.raises(TrainingError, match="is missing: restore it"):
        actor.read(tmp_path / "1-0.pt")
