"""Forks side by side on one GPU: each one's step recorded as a CUDA graph, replayed on a stream of its own.

A single run of a small network leaves most of a large GPU idle, and most of its time goes into launching kernels. Here
a step of a fork is one launch, and the steps of several forks overlap. Forks go on in step, a replay of each in turn,
and are observed together; clones are copied on the device. Checkpoints are written for every interval all the same, by
threads, so that a study is continued like any other, by this runner or another.
"""

import gc
import logging
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from paceline.errors import InputError, PacelineError, TrainingError
from paceline.runner.base import Factories, ObservationBuffer, Runner, by_task
from paceline.runner.local import Local, build, load_into
from paceline.runner.user_errors import failure_of
from paceline.study import Checkpoints, Failure, Interval, Report
from paceline.training import (
    CudaWorkStream,
    DeviceBatches,
    NotRecordableError,
    Randomness,
    RecordedTraining,
    WorkStream,
    check_recordable,
    get_random_state,
    load_checkpoint,
    save_checkpoint,
)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Going:
    """An interval that is trained in a slot."""

    interval: Interval
    slot: RecordedTraining
    observations: ObservationBuffer = field(default_factory=ObservationBuffer)
    failure: Failure | None = None

    @property
    def at_start(self) -> bool:
        """Whether to observe what the run begins with, as a training does that evaluates."""
        return self.slot.training.steps_done == 0 and self.slot.training.evaluate is not None

    @property
    def left(self) -> int:
        """Steps to the next observation; none where it is done or has failed."""
        training, interval = self.slot.training, self.interval
        return 0 if self.failure else training.next_observation(interval.schedule, interval.stop) - training.steps_done

    def observe(self) -> None:
        """Queue an observation."""
        with self._failing():
            self.slot.observe()

    def note(self) -> None:
        """Wait for the observation, and add it."""
        with self._failing():
            if not self.failure:
                self.failure = self.observations.add(self.slot.training.steps_done, self.slot.values())

    @contextmanager
    def _failing(self) -> Generator[None]:
        """What a user's `evaluate` raises is this fork's failure; where the GPU stops, all do."""
        try:
            yield
        except (PacelineError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            if "CUDA error" in str(error):
                raise
            self.failure = failure_of(error)


class Streams(Runner):
    """Trains intervals side by side on one GPU; where steps cannot be recorded, says why and goes on as `local`.

    Args:
        make_training: builds one run, a `TorchTraining` on a GPU with `DeviceBatches`, once per fork at a time; or one
            function for each task of a family.
        forks: how many at a time, exactly; by default as many as there are, or as fit into the GPU's memory.
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
        self._make_stream, self._exactly, self._most = make_stream, forks is not None, forks
        self._slots: dict[int, list[RecordedTraining]] = {}  # by task
        self._holds: dict[Path, RecordedTraining] = {}
        self._local: Local | None = None
        self._writers = ThreadPoolExecutor(4)
        self._drawn: dict[int, dict[str, Any]] = {}
        self.bytes_per_fork = 0

    # what the loop asks for

    def attach(self, checkpoints: Checkpoints, seed: int) -> None:
        """Work for a study, the runner that takes over included."""
        super().attach(checkpoints, seed)
        if self._local is not None:
            self._local.attach(checkpoints, seed)

    def prepare(self, task: int = 0) -> None:
        """Keep the state of the untrained run."""
        start = self.checkpoints.path(task, 0)
        if start.exists():
            return
        if self._local is None:
            self._make_room(Counter([task]))
        if self._local is not None:
            self._local.prepare(task)
            return
        slot = self._slots[task][0]  # made just now: no run of this task has begun without a start
        with self.stopwatch.on("checkpoint"):
            save_checkpoint(slot.state_dict(), start)
        self._holds[start] = slot

    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        """Train as many at a time as there is room for."""
        waiting: list[Interval] = list(intervals)
        before = self._count
        while waiting:
            if self._local is None:
                self._make_room(Counter(interval.task for interval in waiting))
            if self._local is not None:
                self._local.stopwatch, self._local.on_step = self.stopwatch, self.on_step
                yield from self._local.run(waiting)
                return
            if self._count > before:
                before = self._count
                logger.info(f"streams: {before} forks at a time, {_megabytes(self.bytes_per_fork)} of the GPU's memory")
            room = {task: list(slots) for task, slots in self._slots.items()}
            going = [interval for interval in waiting if room.get(interval.task) and room[interval.task].pop()]
            waiting = [interval for interval in waiting if interval not in going]
            yield from self._side_by_side(going)

    def close(self) -> None:
        """Let go of the GPU's memory."""
        self._writers.shutdown(cancel_futures=True)
        self._let_go()

    # slots

    @property
    def _count(self) -> int:
        return sum(map(len, self._slots.values()))

    def _make_room(self, wanted: Counter[int]) -> None:
        """Have a slot for each fork of each task, as far as they fit; or find that steps cannot be recorded."""
        while (task := self._short_of(wanted)) is not None:
            if self._most is not None and self._count >= self._most and not self._evict(wanted):
                return
            try:
                with self.stopwatch.on("capture"):
                    self._add_slot(task)
            except NotRecordableError as reason:
                warnings.warn(f"streams: {reason}. Going on as local, one fork after the other", stacklevel=2)
                self._let_go()
                self._local = Local(self._factories)
                self._local.attach(self.checkpoints, self.seed)
                return
            except torch.OutOfMemoryError as error:
                if not self._evict(wanted):
                    self._make_do(wanted.total(), error)
                    return

    def _short_of(self, wanted: Counter[int]) -> int | None:
        """The task that lacks slots, the one with the smallest share of them; None where none does."""
        share = {task: len(self._slots.get(task, ())) / count for task, count in wanted.items()}
        least = min(share, key=lambda task: share[task])
        return least if share[least] < 1 else None

    def _evict(self, wanted: Counter[int]) -> bool:
        """Let go of the slots of a task that nothing waits for, if there is one."""
        idle = next((task for task, slots in self._slots.items() if slots and task not in wanted), None)
        if idle is None:
            return False
        gone = self._slots.pop(idle)
        self._holds = {path: slot for path, slot in self._holds.items() if slot not in gone}
        gone.clear()
        _let_go()
        return True

    def _let_go(self) -> None:
        self._slots.clear()
        self._holds.clear()
        _let_go()

    def _add_slot(self, task: int) -> None:
        with self._as_the_first(task):
            training, batches = check_recordable(build(self._factories[task]))
        device, others = batches.device, self._slots.setdefault(task, [])
        if self._make_stream is CudaWorkStream and device.type != "cuda":
            raise NotRecordableError(f"the model is on the {device}, which is no GPU")
        if others:
            _share_data(batches, others[0].batches)
        before = _used(device)
        others.append(RecordedTraining(training, self._make_stream(device)))
        self.bytes_per_fork = _used(device) - before

    @contextmanager
    def _as_the_first(self, task: int) -> Generator[None]:
        """Have each call of a factory draw the random numbers of the first: forks must see the same data."""
        if task not in self._drawn:
            self._drawn[task] = get_random_state()
            yield
            return
        again = Randomness()
        again.state = self._drawn[task]
        with again.activate():
            yield

    def _make_do(self, wanted: int, error: Exception) -> None:
        """Go on with the slots that fitted, where the user did not ask for a number."""
        there = self._count
        _let_go()
        said = f"{there} of {wanted} forks fit into the GPU's memory at a time, {_megabytes(self.bytes_per_fork)}"
        if there == 0:
            raise TrainingError(f"not one fork fits into the GPU's memory ({error}): make batch or model smaller")
        if self._exactly:
            raise TrainingError(f"{said}, and {self._most} were asked for: ask for {there}, or leave forks out")
        warnings.warn(f"streams: {said}: the others wait for their turn", stacklevel=4)
        self._most = there

    # a round

    def _side_by_side(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        with self.stopwatch.on("checkpoint"):
            going = self._begun(intervals)
        self._holds.clear()
        self._observe([one for one in going if one.at_start])
        while any(one.left for one in going):
            self._to_next_observation([one for one in going if one.left])
        saved = {self._writers.submit(self._saved, one): one for one in going if not one.failure}
        yield from (one.observations.report(one.interval, one.failure) for one in going if one.failure)
        finished = as_completed(saved)
        while True:
            with self.stopwatch.on("checkpoint"):
                future = next(finished, None)
            if future is None:
                return
            future.result()
            one = saved[future]
            self._holds[self.checkpoints.target(one.interval)] = one.slot
            yield one.observations.report(one.interval)

    def _to_next_observation(self, going: list[_Going]) -> None:
        """A replay of each in turn; then all are observed, and read once."""
        with self.stopwatch.on("training"), _in_words():
            left = [(one.slot, one.left) for one in going]
            for i in range(max(steps for _, steps in left)):
                for slot, steps in left:
                    if i < steps:
                        slot.step()
            for slot, _ in left:
                slot.stream.synchronize()
        self._observe(going)

    def _observe(self, going: list[_Going]) -> None:
        with self.stopwatch.on("evaluation"), _in_words():
            for one in going:
                one.observe()
            for one in going:
                one.note()
                self.on_step(one.interval.fork, one.slot.training.steps_done)

    def _begun(self, intervals: Sequence[Interval]) -> list[_Going]:
        """Put a slot into the state that each interval begins from: it is there already, a clone, or from disk."""
        free = {task: list(slots) for task, slots in self._slots.items()}
        placed = dict[int, RecordedTraining]()
        for interval in intervals:  # a slot that holds the state stays as it is for the first that goes on from it
            holder = self._holds.get(self.checkpoints.origin(interval))
            if holder in free[interval.task]:
                free[interval.task].remove(holder)
                placed[interval.fork] = holder
        for interval in intervals:
            if interval.fork not in placed:
                rest = free[interval.task]
                slot = placed[interval.fork] = next((s for s in rest if s not in self._holds.values()), rest[0])
                rest.remove(slot)
                self._put(slot, self.checkpoints.origin(interval))
        for interval in intervals:
            slot, seed = placed[interval.fork], self.clone_seed(interval)
            if seed is not None:
                slot.reseed(seed)
            slot.begin(interval.schedule)
        return [_Going(interval, placed[interval.fork]) for interval in intervals]

    def _put(self, slot: RecordedTraining, origin: Path) -> None:
        holder = self._holds.get(origin)
        self._holds = {path: kept for path, kept in self._holds.items() if kept is not slot}
        if holder is not None and holder is not slot:
            slot.clone(holder)
        elif holder is None:
            load_into(slot.load_state_dict, load_checkpoint(origin), origin)

    def _saved(self, one: _Going) -> None:
        save_checkpoint(one.slot.state_dict(), self.checkpoints.target(one.interval))


def _share_data(batches: DeviceBatches, first: DeviceBatches) -> None:
    """Where a factory makes its data anew, let go of the copy; forks with other data cannot be compared."""
    own, there = batches.tensors, first.tensors
    if [(t.shape, t.device) for t in own] == [(t.shape, t.device) for t in there] and all(map(torch.equal, own, there)):
        batches.tensors = there
    else:
        warnings.warn(
            "the training factory makes other data each time it is called: forks cannot be compared, build the data "
            "outside of it, or with a seed",
            stacklevel=2,
        )


def _used(device: torch.device) -> int:
    """Bytes of the GPU that are taken."""
    if device.type != "cuda":
        return 0
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(device)
    return total - free


def _let_go() -> None:
    """Give memory back that nothing refers to, cycles included."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def _in_words() -> Generator[None]:
    """What the GPU says, in words; after such an error a process cannot use it any more."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise TrainingError(
            "the GPU's memory ran out after the steps were recorded: ask for fewer forks at a time (forks=), the study "
            "goes on from the last checkpoints"
        ) from error
    except RuntimeError as error:
        first = next(iter(str(error).splitlines()), "")
        raise TrainingError(
            f"the GPU stopped while steps were replayed ({type(error).__name__}: {first}): start the study again, it "
            "goes on from the last checkpoints; with runner='local' the line at fault shows"
        ) from error


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB each"
