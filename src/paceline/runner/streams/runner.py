"""Forks side by side on one GPU. The step of each is recorded as a CUDA graph and replayed on a stream of its own.

A single run of a small network leaves most of a large GPU idle, and spends most of its time launching kernels. Here a
step of a fork is one launch, and the steps of several forks overlap. Clones are copied on the device. A checkpoint is
written for every interval all the same, by threads, so that this runner or any other can continue the study.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import torch

from paceline.errors import InputError
from paceline.runner.base import Factories, Runner, by_task
from paceline.runner.best_of_interval import BestOfInterval
from paceline.runner.fingerprint import Fingerprint
from paceline.runner.local import Local, load_into
from paceline.runner.streams.lockstep import RunningFork, observe, replay_to_observation
from paceline.runner.streams.pool import RecordingPool
from paceline.study import Checkpoints, Interval, Report
from paceline.training import (
    CudaWorkStream,
    ExpectedTime,
    NotRecordableError,
    RecordedTraining,
    WorkStream,
    load_checkpoint,
    save_checkpoint,
)

logger = logging.getLogger(__name__)
WRITERS = 4  # threads that write checkpoints


class Streams(Runner):
    """Trains intervals side by side on one GPU. If steps cannot be recorded, a warning says why, and `Local` runs them.

    Args:
        make_training: builds one run, a `TorchTraining` on a GPU with `DeviceBatches`. It is called once for each fork
            that trains at a time. A sequence has one function per task of a family.
        forks: how many train at a time, exactly; by default all, or as many as fit into the GPU's memory.
        make_stream: makes the queue of one fork's work.
    """

    def __init__(
        self,
        make_training: Factories,
        *,
        forks: int | None = None,
        make_stream: Callable[[torch.device], WorkStream] = CudaWorkStream,
    ) -> None:
        super().__init__()
        if forks is not None and forks < 1:
            raise InputError(f"forks must be 1 or more, got {forks}: leave it out to have as many as fit")
        self._factories = by_task(make_training)
        self._pool = RecordingPool(self._factories, make_stream, forks)
        self._local: Local | None = None
        self._writers = ThreadPoolExecutor(WRITERS)

    @property
    def bytes_per_fork(self) -> int:
        """GPU memory of one fork."""
        return self._pool.bytes_per_fork

    def attach(self, checkpoints: Checkpoints, seed: int) -> None:
        """Work for a study. `Local` does too, if it has taken over."""
        super().attach(checkpoints, seed)
        if self._local is not None:
            self._local.attach(checkpoints, seed)

    def evaluates(self) -> bool:
        """Whether the training says that its values come from an evaluation."""
        self._fill_pool(Counter([0]))
        if self._local is not None:
            return self._local.evaluates()
        return self._pool.of_task(0)[0].training.evaluates

    def fingerprint(self, task: int, *, may_build: bool = True) -> Fingerprint | None:
        """What the training of a task consisted of when it was built."""
        if may_build and task not in self._pool.fingerprints:
            self._fill_pool(Counter([task]))
        if self._local is not None:
            return self._local.fingerprint(task, may_build=may_build)
        return self._pool.fingerprints.get(task)

    def prepare(self, task: int = 0) -> None:
        """Save the state of the untrained run."""
        start = self.checkpoints.path(task, 0)
        if start.exists():
            return
        self._fill_pool(Counter([task]))
        if self._local is not None:
            self._local.prepare(task)
            return
        training = self._pool.of_task(task)[0]  # no run of the task has begun, so it holds the untrained state
        with self.stopwatch.on("measure"):
            training.measure()
        with self.stopwatch.on("checkpoint"):
            save_checkpoint(training.state_dict(), start)
        self._pool.loaded[start] = training

    def expected_seconds(self, intervals: Sequence[tuple[int, int, int]], steps: int) -> ExpectedTime | None:
        """Known only if `Local` has taken over: how much forks side by side slow each other down is not measured."""
        return self._local.expected_seconds(intervals, steps) if self._local is not None else None

    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        """Train as many intervals at a time as fit."""
        waiting: list[Interval] = list(intervals)
        before = len(self._pool)
        while waiting:
            self._fill_pool(Counter(interval.task for interval in waiting))
            if self._local is not None:
                self._local.stopwatch, self._local.on_step = self.stopwatch, self.on_step
                self._local.keep_rule = self.keep_rule
                yield from self._local.run(waiting)
                return
            if len(self._pool) > before:
                before, size = len(self._pool), self.bytes_per_fork / 1e6
                logger.info(f"streams: {before} forks at a time, {size:,.0f} MB each of the GPU's memory")
            free = Counter({interval.task: len(self._pool.of_task(interval.task)) for interval in waiting})
            batch: list[Interval] = []
            for interval in waiting:
                if free[interval.task] > 0:
                    free[interval.task] -= 1
                    batch.append(interval)
            waiting = [interval for interval in waiting if interval not in batch]
            yield from self._run_side_by_side(batch)

    def close(self) -> None:
        """Release the GPU's memory."""
        self._writers.shutdown(cancel_futures=True)
        self._pool.clear()

    def _fill_pool(self, forks: Counter[int]) -> None:
        """Have recorded trainings for these numbers of forks by task; let `Local` take over if there can be none."""
        if self._local is not None:
            return
        try:
            with self.stopwatch.on("capture"):
                self._pool.fill(forks)
        except NotRecordableError as reason:
            warnings.warn(f"streams: {reason}. Continuing as local, one fork after the other", stacklevel=2)
            self._pool.clear()
            self._local = Local(self._factories)
            self._local.attach(self.checkpoints, self.seed)

    def _run_side_by_side(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        with self.stopwatch.on("checkpoint"):
            forks = self._begin(intervals)
        self._pool.loaded.clear()
        self._observe([fork for fork in forks if fork.observes_start])
        for fork in forks:
            if fork.add_untrained():
                self.on_step(fork.interval.fork, 0)
        while active := [fork for fork in forks if fork.steps_to_observation]:
            with self.stopwatch.on("training"):
                replay_to_observation(active)
            self._observe(active)
        writes = {self._writers.submit(self._save, fork): fork for fork in forks}
        written = as_completed(writes)
        while True:
            with self.stopwatch.on("checkpoint"):
                future = next(written, None)
            if future is None:
                return
            future.result()
            fork = writes[future]
            if fork.failure is None:
                self._pool.loaded[self.checkpoints.target(fork.interval)] = fork.recorded
            yield fork.report()

    def _observe(self, forks: Sequence[RunningFork]) -> None:
        with self.stopwatch.on("evaluation"):
            observe(forks)
        for fork in forks:
            self.on_step(fork.interval.fork, fork.steps_done)

    def _begin(self, intervals: Sequence[Interval]) -> list[RunningFork]:
        """Give each interval a recorded training, and put it into the state that the interval begins from."""
        trainings = self._assign(intervals)
        for interval in intervals:
            training, seed = trainings[interval.fork], self.clone_seed(interval)
            if seed is not None:
                training.reseed(seed)
            training.begin(interval.schedule)
        return [
            RunningFork(interval, trainings[interval.fork], BestOfInterval(interval, self.keep_rule(interval)))
            for interval in intervals
        ]

    def _assign(self, intervals: Sequence[Interval]) -> dict[int, RecordedTraining]:
        """A recorded training in the right state for each fork: one that holds it already, a clone, or from disk."""
        free = {interval.task: self._pool.of_task(interval.task) for interval in intervals}
        assigned = dict[int, RecordedTraining]()
        for interval in intervals:
            holder = self._pool.loaded.get(self.checkpoints.origin(interval))
            if holder is not None and holder in free[interval.task]:  # the first fork that continues from it
                free[interval.task].remove(holder)
                assigned[interval.fork] = holder
        for interval in intervals:
            if interval.fork not in assigned:
                rest = free[interval.task]
                training = next((one for one in rest if one not in self._pool.loaded.values()), rest[0])
                rest.remove(training)
                assigned[interval.fork] = training
                self._load(training, self.checkpoints.origin(interval))
        return assigned

    def _load(self, training: RecordedTraining, origin: Path) -> None:
        """Put a recorded training into the state of a checkpoint."""
        holder = self._pool.loaded.get(origin)
        self._pool.loaded = {path: other for path, other in self._pool.loaded.items() if other is not training}
        if holder is None:
            load_into(training.load_state_dict, load_checkpoint(origin), origin)
        elif holder is not training:
            training.clone(holder)

    def _save(self, fork: RunningFork) -> None:
        fork.recorded.stream.synchronize()
        if fork.failure is None:
            save_checkpoint(fork.recorded.state_dict(), self.checkpoints.target(fork.interval))
        fork.best.save(self.checkpoints, fork.failure)
