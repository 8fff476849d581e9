"""Every interval is run to its end once, whatever dies on the way. Here without processes and without waiting."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from ray.exceptions import NodeDiedError, ObjectLostError, OutOfMemoryError, RayTaskError

from paceline.errors import TrainingError
from paceline.runner.ray import dispatch as module
from paceline.runner.ray.assignments import Assignment
from paceline.runner.ray.dispatch import Dispatcher
from paceline.runner.ray.pool import WorkerPool
from paceline.runner.ray.state_store import StateStore
from paceline.runner.ray.step_times import StepTimes
from paceline.runner.stopwatch import Stopwatch
from paceline.runner.user_errors import failure_of
from paceline.study import Failure, Interval, Report
from paceline.traces import Schedule
from tests.runner.ray.fake_ray import Actor, FakeCluster, FakeRay, NodeAffinity, Reference, Stream

DIED = NodeDiedError("the process was killed")
STATE_LOST = RayTaskError("run", "", ObjectLostError("ab" * 28, None, ""))
RAISED = RayTaskError("run", "", TrainingError("the state does not fit the training"))


def assignment(fork: int, parent: int | None = None) -> Assignment:
    """Steps 10 to 20 of a fork."""
    interval = Interval(fork, parent, 10, 20, Schedule.constant(0.1, 40), 2)
    origin = fork if parent is None else parent
    return Assignment(interval, Path(f"{origin}-10.pt"), Path(f"{fork}-20.pt"))


def report(fork: int, failure: Failure | None = None) -> Report:
    return Report(fork, 10, 20, (15, 20), {"raw": (2.0, 1.0)}, failure)


@dataclass
class Run:
    """A dispatcher, and the events that a test lets happen."""

    fake: FakeRay
    cluster: FakeCluster
    pool: WorkerPool
    dispatcher: Dispatcher
    steps: list[tuple[int, int]]
    clock: list[float]

    def look(self) -> list[Report]:
        """One turn of the dispatcher's loop: hand out what can be handed out, then handle all that is ready."""
        dispatcher = self.dispatcher
        dispatcher._start_attempts()
        dispatcher._start_second_attempts()
        dispatcher._warn_without_workers()
        handled = [dispatcher._handle(reference) for reference in dispatcher._wait()]
        return [one for one in handled if one is not None]

    def start_workers(self, *nodes: str) -> None:
        """Let as many workers start, and look."""
        self.dispatcher._start_attempts()
        for reference, node in zip(list(self.pool.starting), nodes, strict=False):
            reference.resolve(node)
        self.look()
        self.dispatcher._start_attempts()

    def running(self) -> dict[int, list[tuple[Actor, Stream]]]:
        """Actors and streams of the running attempts, by fork."""
        running: dict[int, list[tuple[Actor, Stream]]] = {}
        for stream, attempt in self.dispatcher._running.items():
            running.setdefault(attempt.assignment.interval.fork, []).append((attempt.worker.actor, stream))
        return running

    def send(self, fork: int, *messages: object) -> list[Report]:
        """Let the first attempt at a fork send messages, one at a time."""
        _, stream = self.running()[fork][0]
        reports = []
        for message in messages:
            stream.messages.append(message)
            reports += self.look()
        return reports

    def save(self) -> list[Report]:
        """Let all states that are being written be safe."""
        for reference in self.dispatcher._saving:
            reference.resolve()
        return self.look()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch, clock: list[float]):
    """A function that makes a dispatcher on a cluster with these nodes."""
    fake = FakeRay(
        start=lambda: Reference(is_ready=False),
        run=Stream,
        write=lambda: Reference(is_ready=False),
        read=lambda: Reference("from disk"),
    )
    for name in ("dispatch", "pool", "state_store"):
        monkeypatch.setattr(f"paceline.runner.ray.{name}.ray", fake)
    monkeypatch.setattr("paceline.runner.ray.pool.NodeAffinitySchedulingStrategy", NodeAffinity)

    def make(assignments: Iterable[Assignment], nodes: Iterable[str] = "ab", warn_after: float = 20.0) -> Run:
        cluster, steps = FakeCluster(*nodes), list[tuple[int, int]]()
        pool = WorkerPool(cluster, dict, None)
        dispatcher = Dispatcher(
            assignments,
            pool,
            StateStore(cluster, None),
            step_times=StepTimes(patience=4.0, slow_after=5.0),
            warn_after=warn_after,
            on_step=lambda fork, step: steps.append((fork, step)),
            stopwatch=Stopwatch(),
        )
        return Run(fake, cluster, pool, dispatcher, steps, clock)

    return make


def test_a_report_comes_when_its_state_is_safe(begin) -> None:
    run = begin([assignment(1)])
    run.start_workers("a")
    assert run.send(1, [15], report(1), "state") == []
    assert run.save() == [report(1)]
    assert run.steps == [(1, 15), (1, 20)]
    (worker,) = run.pool.idle
    assert worker.loaded == Path("1-20.pt")


def test_after_a_mistake_the_queue_waits_for_the_forks_that_run(begin) -> None:
    run = begin([assignment(fork) for fork in range(1, 5)])
    run.start_workers("a", "b")
    mistake = failure_of(KeyError("label"))
    assert [one.fork for one in run.send(2, report(2, mistake))] == [2]
    run.look()
    assert set(run.running()) == {1}
    run.send(1, report(1), "state")
    run.look()
    assert set(run.running()) == {3, 4}
    run.send(3, report(3, Failure("diverged", step=15)))
    run.send(4, report(4, mistake))
    assert not run.running()


def test_after_mistakes_of_all_that_run_the_next_fork_tries_alone(begin) -> None:
    run = begin([assignment(fork) for fork in range(1, 5)])
    run.start_workers("a", "b")
    for fork in (1, 2):
        run.send(fork, report(fork, failure_of(KeyError("label"))))
    run.look()
    assert set(run.running()) == {3}


def test_the_loop_ends_when_all_reports_have_come(begin, clock: list[float]) -> None:
    """The same through `reports`, with workers that answer at once."""
    run = begin([assignment(1), assignment(2)])
    forks = count(1)

    def answer() -> Stream:
        stream = Stream()
        stream.messages = [report(next(forks)), "state"]
        return stream

    run.fake.results |= {"start": lambda: Reference("a"), "run": answer, "write": Reference}
    assert sorted(one.fork for one in run.dispatcher.reports()) == [1, 2]


def test_forks_wait_for_workers_and_continue_where_their_state_is(begin) -> None:
    run = begin([assignment(1), assignment(2), assignment(3), assignment(9, parent=1)])
    run.start_workers("a", "b")
    assert set(run.running()) == {1, 2}
    assert len(run.pool.starting) == 2
    for worker, fork in zip(run.pool.idle, (1, 2), strict=False):
        worker.loaded = Path(f"{fork}-20.pt")
    run.send(1, report(1), "state")
    run.save()
    run.dispatcher._start_attempts()
    assert set(run.running()) == {2, 3}  # the clone comes last


def test_a_fork_goes_to_the_worker_that_holds_its_state_before_a_clone_does(begin) -> None:
    run = begin([assignment(9, parent=1), assignment(2), assignment(1)])
    run.pool.request()
    (reference,) = run.pool.starting
    reference.resolve("a")
    run.pool.add_started(reference)
    run.pool.idle[0].loaded = Path("1-10.pt")
    run.dispatcher._start_attempts()
    ((actor, _),) = run.running()[1]
    (_, arguments, _) = next(call for call in actor.calls if call[0] == "run")
    assert arguments[2] is None  # no state is sent


def test_a_worker_that_dies_costs_its_attempt_only(begin) -> None:
    run = begin([assignment(1)])
    run.start_workers("a")
    ((first, _),) = run.running()[1]
    run.send(1, [15], DIED)
    assert first.is_killed
    run.start_workers("b")
    run.send(1, [15], report(1), "state")
    assert run.save() == [report(1)]
    assert run.steps == [(1, 15), (1, 20)]  # each step once


@pytest.mark.parametrize(
    ("error", "kind"), [(DIED, "lost"), (OutOfMemoryError("killed: the node was low on memory"), "out of memory")]
)
def test_an_interval_that_kills_three_workers_has_failed(begin, error: Exception, kind: str) -> None:
    run = begin([assignment(1)])
    for _ in range(2):
        run.start_workers("a")
        assert run.send(1, error) == []
    run.start_workers("a")
    (failed,) = run.send(1, error)
    assert (failed.fork, failed.start, failed.stop, failed.failure.kind) == (1, 10, 10, kind)
    assert failed.failure.message.startswith("3 workers died during this interval: ")


def test_a_node_that_dies_never_counts_against_a_fork(begin) -> None:
    run = begin([assignment(1)])
    run.cluster.nodes.remove("b")
    for _ in range(5):
        run.start_workers("b")
        assert run.send(1, DIED) == []
    run.start_workers("a")
    run.send(1, report(1), "state")
    assert run.save() == [report(1)]


def test_a_state_that_is_lost_is_read_from_disk(begin) -> None:
    run = begin([assignment(1)])
    run.dispatcher.states.save(Path("1-10.pt"), Reference("lost"))
    run.start_workers("a")
    ((first, _),) = run.running()[1]
    assert run.send(1, STATE_LOST) == []
    assert not first.is_killed
    run.dispatcher._start_attempts()
    ((actor, _),) = run.running()[1]
    assert actor is first
    assert [call[1][2].value for call in actor.calls if call[0] == "run"] == ["lost", "from disk"]


def test_a_state_that_is_lost_before_it_is_written_is_made_again(begin) -> None:
    run = begin([assignment(1)])
    run.start_workers("a")
    run.send(1, report(1), "state")
    (saving,) = run.dispatcher._saving
    saving.resolve(RayTaskError("write", "", ObjectLostError("ab" * 28, None, "")))
    assert run.look() == []
    run.dispatcher._start_attempts()
    run.send(1, report(1), "state")
    assert run.save() == [report(1)]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (RayTaskError("write", "", TrainingError("the disk is full: free disk space")), "^the disk is full"),
        (RayTaskError("write", "PermissionError: read-only", PermissionError()), "1-20.pt could not be written: Perm"),
    ],
)
def test_a_state_that_cannot_be_written_stops_the_study(begin, error: Exception, message: str) -> None:
    run = begin([assignment(1)])
    run.start_workers("a")
    run.send(1, report(1), "state")
    (saving,) = run.dispatcher._saving
    saving.resolve(error)
    with pytest.raises(TrainingError, match=message):
        run.look()


def test_an_error_of_paceline_on_a_node_stops_the_study(begin) -> None:
    run = begin([assignment(1)])
    run.start_workers("a")
    with pytest.raises(TrainingError, match="does not fit the training"):
        run.send(1, RAISED)


def test_a_fork_that_fails_keeps_its_worker_and_no_state(begin) -> None:
    run = begin([assignment(1)])
    run.start_workers("a")
    failed = report(1, Failure("not finite", step=20))
    assert run.send(1, failed) == [failed]
    (worker,) = run.pool.idle
    assert (worker.loaded, worker.actor.is_killed) == (None, False)


def test_a_slow_interval_gets_a_second_worker_and_the_first_to_finish_counts(begin, clock: list[float]) -> None:
    run = begin([assignment(1), assignment(2)])
    run.start_workers("a", "b")
    clock[0] = 3.0
    run.send(2, report(2), "state")
    run.save()
    run.pool.idle.clear()
    clock[0] = 11.9
    run.look()
    assert not run.pool.starting
    clock[0] = 12.0  # four times as long as the other
    run.look()
    run.look()
    (reference,) = run.pool.starting  # requested once, on the other node
    assert run.fake.options[-1]["scheduling_strategy"].node_id == "b"
    reference.resolve("b")
    run.look()
    run.look()
    (slow, _), (second, stream) = run.running()[1]
    stream.messages = [report(1), "state"]
    run.look()
    run.look()
    assert run.save() == [report(1)]
    assert slow.is_killed
    assert not second.is_killed
    assert not run.running()


def test_no_second_worker_is_started_while_an_interval_waits_for_its_first(begin, clock: list[float]) -> None:
    run = begin([assignment(1), assignment(2), assignment(3)])
    run.start_workers("a", "b")
    clock[0] = 1.0
    run.send(2, report(2), "state")
    clock[0] = 100.0
    run.pool.idle.clear()
    run.look()
    assert len(run.running()[1]) == 1


def test_without_workers_a_warning_comes_once(begin, clock: list[float]) -> None:
    run = begin([assignment(1)], warn_after=20.0)
    clock[0] = 20.0
    run.look()
    clock[0] = 20.1
    message = "no worker has come for 20 s: a fork needs cpus=1, gpus=0, the cluster has 2 CPUs"
    with pytest.warns(UserWarning, match=message):
        run.look()
    clock[0] = 1000.0
    run.look()


def test_workers_that_still_train_are_stopped_when_the_study_stops(begin) -> None:
    run = begin([assignment(1), assignment(2)])
    run.start_workers("a", "b")
    run.dispatcher.cancel()
    workers = [actor for actor in run.fake.actors if any(name == "run" for name, _, _ in actor.calls)]
    assert [actor.is_killed for actor in workers] == [True, True]
    assert not run.running()
