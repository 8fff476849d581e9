"""Forks side by side on one GPU: each one's step recorded as a CUDA graph, replayed on a stream of its own.

A single run of a small network leaves most of a large GPU idle, and most of its time goes into launching kernels. Here
a step of a fork is one launch, and the steps of several forks overlap. Forks go on in step, a replay of each in turn,
and are observed together; clones are copied on the device. Checkpoints are written for every interval all the same, by
threads, so that a study is continued like any other, by this runner or another.
"""

import gc
import logging
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from paceline.errors import InputError, TrainingError
from paceline.runner.base import Report, Runner, Task
from paceline.runner.local import Local, built, load_into
from paceline.traces.trace import is_sound
from paceline.training import DeviceBatches, Training, load_checkpoint, save_checkpoint
from paceline.training.captured import Captured, NotCapturableError, check_capturable
from paceline.training.lane import CudaLane, Lane

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Going:
    """A task on its way in a slot."""

    task: Task
    slot: Captured
    every: int
    steps: list[int] = field(default_factory=list[int])
    columns: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    failure: str = ""

    @property
    def at_start(self) -> bool:
        """Whether to observe what the run begins with, as a training does that evaluates."""
        return self.slot.training.done == 0 and self.slot.training.evaluate is not None

    @property
    def left(self) -> int:
        """Steps to the next observation; none where it is done or has failed."""
        done = self.slot.training.done
        return 0 if self.failure else min(self.task.stop, (done // self.every + 1) * self.every) - done

    def note(self, values: dict[str, float]) -> None:
        """Add an observation."""
        self.steps.append(self.slot.training.done)
        for of, number in values.items():
            self.columns.setdefault(of, []).append(number)
        if not is_sound(np.array(list(values.values()))).all():
            self.failure = f"the value at step {self.steps[-1]} is not finite"

    def report(self) -> Report:
        """What came of it."""
        columns = {of: tuple(column) for of, column in self.columns.items()}
        return Report(self.task.fork, tuple(self.steps), columns, self.failure)


class Streams(Runner):
    """Runs tasks side by side on one GPU; where steps cannot be recorded, says why and goes on as `local`.

    Args:
        make_training: builds one run, a `TorchTraining` on a GPU with `DeviceBatches`; called once per fork at a time.
        forks: how many at a time, exactly; by default as many as there are, or as fit into the GPU's memory.
        lane: makes the queue of one fork's work.
    """

    def __init__(
        self,
        make_training: Callable[[], Training],
        *,
        forks: int | None = None,
        lane: Callable[[torch.device], Lane] = CudaLane,
    ) -> None:
        super().__init__()
        if forks is not None and forks < 1:
            raise InputError(f"forks must be 1 or more, got {forks}: leave it out to have as many as fit")
        self._make_training, self._make_lane = make_training, lane
        self._exactly, self._most = forks, forks
        self._slots: list[Captured] = []
        self._holds: dict[Path, Captured] = {}
        self._local: Local | None = None
        self._writers = ThreadPoolExecutor(8)
        self.bytes_per_fork = 0

    # what the loop asks for

    def prepare(self, start: Path, task: int = 0) -> None:
        """Keep the state of the untrained run."""
        if start.exists():
            return
        if not self._slots and self._local is None:
            self._grow(1)
        if self._local is not None:
            self._local.prepare(start)
        else:
            with self.stopwatch.on("checkpoint"):
                save_checkpoint(self._slots[0].state_dict(), start)
            self._holds[start] = self._slots[0]

    def run(self, tasks: Sequence[Task]) -> Iterator[Report]:
        """Run as many at a time as there is room for."""
        before = len(self._slots)
        if self._local is None:
            self._grow(len(tasks))
        if self._local is not None:
            self._local.stopwatch, self._local.on_step = self.stopwatch, self.on_step
            yield from self._local.run(tasks)
            return
        room = len(self._slots)
        if room > before:
            logger.info(f"streams: {room} forks at a time, {_megabytes(self.bytes_per_fork)} of the GPU's memory")
        for first in range(0, len(tasks), room):
            yield from self._side_by_side(tasks[first : first + room])

    def close(self) -> None:
        """Let go of the GPU's memory."""
        self._writers.shutdown()
        self._slots.clear()
        self._holds.clear()
        _let_go()

    # slots

    def _grow(self, wanted: int) -> None:
        """Have a slot for each of so many tasks, as far as they fit; or find that steps cannot be recorded."""
        wanted = min(wanted, self._most or wanted) if self._exactly is None else self._exactly
        while len(self._slots) < wanted:
            try:
                with self.stopwatch.on("capture"):
                    self._add_slot()
            except NotCapturableError as reason:
                warnings.warn(f"streams: {reason}. Going on as local, one fork after the other", stacklevel=2)
                self._local = Local(self._make_training)
                return
            except torch.OutOfMemoryError as error:
                self._make_do(wanted, error)
                return

    def _add_slot(self) -> None:
        training = check_capturable(built(self._make_training))
        device = next(training.model.parameters()).device
        if self._make_lane is CudaLane and device.type != "cuda":
            raise NotCapturableError(f"the model is on the {device}, which is no GPU")
        if self._slots:
            _share_data(training.passes.batches, self._slots[0].training.passes.batches)
        before = _used(device)
        self._slots.append(Captured(training, self._make_lane(device)))
        self.bytes_per_fork = _used(device) - before

    def _make_do(self, wanted: int, error: Exception) -> None:
        """Go on with the slots that fitted, where the user did not ask for a number."""
        there = len(self._slots)
        _let_go()
        said = f"{there} of {wanted} forks fit into the GPU's memory at a time, {_megabytes(self.bytes_per_fork)}"
        if there == 0:
            raise TrainingError(f"not one fork fits into the GPU's memory ({error}): make batch or model smaller")
        if self._exactly is not None:
            raise TrainingError(f"{said}, and exactly {wanted} were asked for: ask for {there}, or leave forks out")
        warnings.warn(f"streams: {said}: the others wait for their turn", stacklevel=4)
        self._most = there

    # a round

    def _side_by_side(self, tasks: Sequence[Task]) -> Iterator[Report]:
        with self.stopwatch.on("checkpoint"):
            going = self._begun(tasks)
        self._holds.clear()
        self._observe([one for one in going if one.at_start])
        while any(one.left for one in going):
            self._to_next_observation([one for one in going if one.left])
        saved = {self._writers.submit(self._saved, one): one for one in going if not one.failure}
        yield from (one.report() for one in going if one.failure)
        finished = as_completed(saved)
        while True:
            with self.stopwatch.on("checkpoint"):
                future = next(finished, None)
            if future is None:
                return
            future.result()
            self._holds[saved[future].task.target] = saved[future].slot
            yield saved[future].report()

    def _to_next_observation(self, going: list[_Going]) -> None:
        """A replay of each in turn; then all are observed, and read once."""
        with self.stopwatch.on("training"), _readable():
            left = [(one.slot, one.left) for one in going]
            for i in range(max(steps for _, steps in left)):
                for slot, steps in left:
                    if i < steps:
                        slot.step()
            for slot, _ in left:
                slot.lane.finish()
        self._observe(going)

    def _observe(self, going: list[_Going]) -> None:
        with self.stopwatch.on("evaluation"):
            for one in going:
                one.slot.observe()
            for one in going:
                one.note(one.slot.values())
                self.on_step(one.task.fork, one.steps[-1])

    def _begun(self, tasks: Sequence[Task]) -> list[_Going]:
        """Put a slot into the state that each task begins from: one that is there already, a clone, or from disk."""
        free, placed = list(self._slots), dict[int, Captured]()
        for task in tasks:  # a slot that holds the state stays what it is for the first that goes on from it
            holder = self._holds.get(task.origin)
            if holder in free:
                free.remove(holder)
                placed[task.fork] = holder
        for task in tasks:
            if task.fork not in placed:
                slot = placed[task.fork] = next((s for s in free if s not in self._holds.values()), free[0])
                free.remove(slot)
                self._put(slot, task.origin)
        for task in tasks:
            slot = placed[task.fork]
            if task.seed is not None:
                slot.reseed(task.seed)
            slot.begin(task.schedule)
        return [_Going(t, placed[t.fork], placed[t.fork].training.spacing(t.schedule)) for t in tasks]

    def _put(self, slot: Captured, origin: Path) -> None:
        holder = self._holds.get(origin)
        self._holds = {path: kept for path, kept in self._holds.items() if kept is not slot}
        if holder is not None and holder is not slot:
            slot.clone(holder)
        elif holder is None:
            load_into(slot.load_state_dict, load_checkpoint(origin), origin)

    def _saved(self, one: _Going) -> None:
        save_checkpoint(one.slot.state_dict(), one.task.target)


def _share_data(batches: object, first: object) -> None:
    """Where a factory makes its data anew, let go of the copy."""
    if isinstance(batches, DeviceBatches) and isinstance(first, DeviceBatches):
        same = len(batches.tensors) == len(first.tensors) and all(map(torch.equal, batches.tensors, first.tensors))
        batches.tensors = first.tensors if same else batches.tensors


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
def _readable() -> Generator[None]:
    """What the GPU says in words; after such an error a process cannot use it any more."""
    try:
        yield
    except RuntimeError as error:
        first = next(iter(str(error).splitlines()), "")
        raise TrainingError(
            f"the GPU stopped while steps were replayed ({type(error).__name__}: {first}): start the study again, it "
            "goes on from the last checkpoints; with runner='local' the line at fault shows"
        ) from error


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB each"
