"""Gives the intervals of a round to workers, and collects their reports.

An interval begins from a checkpoint and depends on nothing else. So it can be run again, or twice at the same time, and
gives the same values. If a worker dies, its interval is queued again. If an interval takes far longer than the others,
a second worker gets it too, and the first one to finish counts.
"""

import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

import ray as _ray
from ray.exceptions import ObjectLostError, RayError, RayTaskError

from paceline.errors import TrainingError
from paceline.runner.ray.assignments import Assignment, Attempt, SecondAttempt
from paceline.runner.ray.errors import (
    describe_error,
    error_to_raise,
    failure_of_lost_workers,
    lost_its_input,
    paceline_error,
    unpack_exception,
)
from paceline.runner.ray.pool import WorkerHandle, WorkerPool
from paceline.runner.ray.state_store import StateStore
from paceline.runner.ray.step_times import StepTimes
from paceline.runner.stopwatch import Stopwatch
from paceline.runner.user_errors import is_mistake
from paceline.study import Report

ray: Any = _ray
MAX_CRASHES = 3  # of workers at one interval, not counting those that died with their node, until it has failed
POLL_PERIOD = 0.5  # seconds between two looks for slow intervals


class Dispatcher:
    """Runs the assignments of a round.

    Args:
        assignments: what is to be done.
        pool: the workers.
        states: the states that intervals begin from.
        step_times: which intervals are slow.
        warn_after: seconds without any worker until a warning comes.
        on_step: called with (fork, step) for each observation.
        stopwatch: counts the seconds of waiting.
    """

    def __init__(
        self,
        assignments: Iterable[Assignment],
        pool: WorkerPool,
        states: StateStore,
        *,
        step_times: StepTimes,
        warn_after: float,
        on_step: Callable[[int, int], None],
        stopwatch: Stopwatch,
    ) -> None:
        self.pool, self.states, self.step_times = pool, states, step_times
        self._warn_after, self._on_step, self._stopwatch = warn_after, on_step, stopwatch
        self._queue = list(assignments)
        self._unfinished = len(self._queue)
        self._running: dict[Any, Attempt] = {}
        self._saving: dict[Any, tuple[Assignment, Report]] = {}
        self._last_active = time.monotonic()
        self._latest_is_mistake = False

    def reports(self) -> Generator[Report]:
        """Run all assignments; yield each report when its state is safe."""
        origins = [assignment.origin for assignment in self._queue if assignment.origin is not None]
        self.pool.shrink(self._unfinished, origins)
        while self._unfinished:
            self._start_attempts()
            self._start_second_attempts()
            self._warn_without_workers()
            for reference in self._wait():
                report = self._handle(reference)
                if report is not None:
                    self._unfinished -= 1
                    self._start_attempts()  # no worker waits while the study writes the report
                    yield report

    def cancel(self) -> None:
        """Stop the workers that are still training."""
        for attempt in self._running.values():
            self.pool.stop(attempt.worker)
        self._running.clear()

    @property
    def _holds_queue(self) -> bool:
        """Whether the queue waits: those that are running may have the mistake of the latest report too."""
        return self._latest_is_mistake and bool(self._running)

    def _start_attempts(self) -> None:
        """Give intervals to idle workers, first to those that hold their state, and request workers for the rest."""
        loaded = {worker.loaded for worker in self.pool.idle}
        # a fork goes before its clones: all of them begin from the state that one worker holds
        self._queue.sort(key=lambda assignment: (assignment.origin not in loaded, assignment.is_clone))
        while self._queue and not self._holds_queue and (worker := self.pool.take(self._queue[0].origin)) is not None:
            self._start(self._queue.pop(0), worker)
        for _ in range(len(self._queue) - len(self.pool.starting)):
            self.pool.request()

    def _start(self, assignment: Assignment, worker: WorkerHandle) -> None:
        origin = assignment.origin
        state = self.states.reference(origin) if origin is not None and origin != worker.loaded else None
        run = worker.actor.run.options(num_returns="streaming")
        stream = run.remote(assignment.interval, assignment.target, state, assignment.task, assignment.rule)
        worker.loaded = None
        self._running[stream] = Attempt(assignment, worker, time.monotonic())

    def _start_second_attempts(self) -> None:
        """Give slow intervals a second worker, if no interval waits for its first one."""
        now = time.monotonic()
        for attempt in [] if self._queue and not self._holds_queue else list(self._running.values()):
            assignment, node = attempt.assignment, attempt.worker.node
            if assignment.interval is None or assignment.second_attempt is SecondAttempt.STARTED:
                continue
            if not self.step_times.is_slow(now - attempt.started, assignment.steps):
                continue
            worker = self.pool.take(assignment.origin, other_than=node)
            if worker is not None:
                assignment.second_attempt = SecondAttempt.STARTED
                self._start(assignment, worker)
            elif assignment.second_attempt is SecondAttempt.NONE:
                assignment.second_attempt = SecondAttempt.REQUESTED
                self.pool.request(other_than=node)

    def _warn_without_workers(self) -> None:
        """Say once what a fork needs, if no worker has come for a while."""
        if self._running or self._saving:
            self._last_active = time.monotonic()
        elif time.monotonic() - self._last_active > self._warn_after:
            self._last_active = float("inf")
            self.pool.warn_without_workers(self._warn_after)

    def _wait(self) -> list[Any]:
        """Wait for news: from running attempts, of workers that have started, of states that are saved."""
        references = [*self._running, *self.pool.starting, *self._saving]
        with self._stopwatch.on("checkpoint" if self._saving and not self._running else "training"):
            # nothing is fetched to this node: states stay where they are
            ready, _ = ray.wait(references, num_returns=1, timeout=POLL_PERIOD, fetch_local=False)
            if ready:  # all that are ready, so that a fork with many observations does not delay the others
                ready, _ = ray.wait(references, num_returns=len(references), timeout=0, fetch_local=False)
        return ready

    def _handle(self, reference: Any) -> Report | None:
        """Handle one piece of news; the report if it finishes an assignment."""
        if reference in self.pool.starting:
            self.pool.add_started(reference)
        elif reference in self._saving:
            return self._finish_save(reference)
        elif reference in self._running:  # not if another attempt has just finished the same interval
            return self._read_stream(reference)
        return None

    def _read_stream(self, stream: Any) -> Report | None:
        """Read the next object of a running attempt: a list of steps, its report, or a state."""
        attempt = self._running[stream]
        try:
            reference = next(stream)
            if attempt.report is not None:
                attempt.states.append(reference)
                return self._finish_if_complete(attempt, attempt.report)
            message = ray.get(reference)
        except (RayError, StopIteration) as error:
            del self._running[stream]
            return self._handle_lost_attempt(attempt, error)
        if not isinstance(message, Report):
            self._pass_on_steps(attempt.assignment, message)
            return None
        self._pass_on_steps(attempt.assignment, message.steps)
        attempt.report = unpack_exception(message)
        return self._finish_if_complete(attempt, attempt.report)

    def _pass_on_steps(self, assignment: Assignment, steps: Iterable[int]) -> None:
        """Call `on_step` once for each step, even if the interval is run again."""
        for step in steps:
            if assignment.interval is not None and step > assignment.last_step:
                assignment.last_step = step
                self._on_step(assignment.interval.fork, step)

    def _finish_if_complete(self, attempt: Attempt, report: Report) -> Report | None:
        """Stop the other attempts at the same interval. The report is returned once all its states are safe."""
        assignment, worker, targets = attempt.assignment, attempt.worker, attempt.targets
        if len(attempt.states) < len(targets):
            return None
        self._stop_attempts(assignment, keep=worker)
        self.pool.idle.append(worker)
        self._latest_is_mistake = is_mistake(report.failure)
        if assignment.interval is not None and report.failure is None:
            self.step_times.add(time.monotonic() - attempt.started, assignment.steps)
            worker.loaded = assignment.target
        saves = [self.states.save(path, state) for path, state in zip(targets, attempt.states, strict=True)]
        assignment.unsaved = {saving for saving in saves if saving is not None}
        self._saving |= dict.fromkeys(assignment.unsaved, (assignment, report))
        return None if assignment.unsaved else report

    def _finish_save(self, saving: Any) -> Report | None:
        assignment, report = self._saving.pop(saving)
        if saving not in assignment.unsaved:  # another of its states was lost, and the interval is run again
            return None
        try:
            ray.get(saving)
        except RayError as error:
            if not lost_its_input(error):
                reason = describe_error(error)
                failed = TrainingError(f"the checkpoint {assignment.target} could not be written: {reason}")
                raise paceline_error(error) or failed from None
            self.states.forget(assignment.target)  # it was lost with its worker or its node before it was written
            assignment.unsaved.clear()
            return self._queue_again(assignment, error, crashed=not isinstance(error, ObjectLostError))
        assignment.unsaved.discard(saving)
        return None if assignment.unsaved else report

    def _handle_lost_attempt(self, attempt: Attempt, error: Exception) -> Report | None:
        assignment, worker = attempt.assignment, attempt.worker
        if lost_its_input(error):  # the worker is fine, but the state that it should begin from is lost
            self.pool.idle.append(worker)
            if assignment.origin is not None:
                self.states.forget(assignment.origin)
            return self._queue_again(assignment, error, crashed=not isinstance(error, ObjectLostError))
        if isinstance(error, RayTaskError):
            raised = error_to_raise(error)
            raise raised from raised.__cause__
        self.pool.stop(worker)
        # a node that leaves does not count against the fork
        return self._queue_again(assignment, error, crashed=self.pool.cluster.is_alive(worker.node))

    def _queue_again(self, assignment: Assignment, error: Exception, *, crashed: bool) -> Report | None:
        """Queue an interval again, unless another attempt is running; give it up after too many crashes."""
        assignment.crashes += crashed
        if assignment.crashes >= MAX_CRASHES:
            self._stop_attempts(assignment)
            interval, failure = assignment.interval, failure_of_lost_workers(error, MAX_CRASHES)
            fork, start = (interval.fork, interval.start) if interval is not None else (assignment.task, 0)
            return Report(fork, start, start, (), {}, failure)
        if assignment not in [attempt.assignment for attempt in self._running.values()]:
            self._queue.append(assignment)
        return None

    def _stop_attempts(self, assignment: Assignment, keep: WorkerHandle | None = None) -> None:
        """Stop all attempts at an assignment, and their workers except one."""
        for stream in [stream for stream, attempt in self._running.items() if attempt.assignment is assignment]:
            worker = self._running.pop(stream).worker
            if worker is not keep:
                self.pool.stop(worker)
