"""A torch training whose steps are replayed: one recording of the whole step, and nothing read back but observations.

Gathering the batch, forward, backward, the optimiser and the average of the weights are recorded once. The rate, the
place in the data and the counters are on the device, so that a step costs the host one replay and never a wait.

A recording repeats what the device did, not what Python did. So the recorded step is tried against the plain one, from
the same state and at rates that differ from step to step: a number that the host counts up, or a branch that it takes,
shows as other weights, and the training is refused with the reason.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paceline.errors import PacelineError
from paceline.traces import Schedule
from paceline.training.capturable import CapturableOptimizer
from paceline.training.device_batches import DeviceBatches
from paceline.training.lane import Lane
from paceline.training.layout import flattened, restored
from paceline.training.torch_training import RECENT, TorchTraining

POSITION, TICK, TAKEN = range(3)  # counters: in the pass, in the rates sent, and steps since the interval began
AHEAD = 512  # steps whose rates are sent to the device at a time
TRIED, ALIKE = 3, 0.05  # steps to try a recording for, and how far weights may differ, over how far they moved


class NotCapturableError(PacelineError):
    """A step cannot be recorded and replayed; the message says why."""


def check_capturable(training: Any) -> tuple[TorchTraining, DeviceBatches]:
    """The training and its data; or what can be said against recording its steps before that is tried."""
    if not isinstance(training, TorchTraining):
        raise NotCapturableError(f"the training is a {type(training).__name__}: only a TorchTraining's steps are known")
    kind = type(training)
    if kind.advance is not TorchTraining.advance or kind.load_state_dict is not TorchTraining.load_state_dict:
        raise NotCapturableError(f"{kind.__name__} advances or loads its state in a way of its own")
    batches = training.passes.batches
    if not isinstance(batches, DeviceBatches):
        raise NotCapturableError(
            f"its batches come from the host, from a {type(batches).__name__}: put the data on the device, and draw "
            "from it with paceline.training.DeviceBatches"
        )
    devices = {p.device for p in training.model.parameters()} | {batches.device}
    if len(devices) > 1:
        where = ", ".join(sorted(map(str, devices)))
        raise NotCapturableError(f"model and data must lie on one device, got {where}")
    if training.scaler is not None:
        raise NotCapturableError("a gradient scaler looks at each step whether to take it: use bf16, which needs none")
    return training, batches


class Captured:
    """One fork of a training, recorded.

    Args:
        training: on one device, with `DeviceBatches`; its state is the fork's from now on.
        lane: where its work is queued.
    """

    def __init__(self, training: TorchTraining, lane: Lane) -> None:
        (self.training, self.batches), self.lane = check_capturable(training), lane
        start = restored(flattened(training.state_dict()))  # on the host: the GPU may have no room for two
        self._optimizer = CapturableOptimizer(training.optimizer, self.batches.device)
        device = self.batches.device
        with training.randomness.taken():
            table = self.batches.draw()
        with lane.entered():
            self._table = table.to(device)
            self._recent = torch.zeros((RECENT, *self._table.shape[1:]), dtype=torch.long, device=device)
            self._counters = torch.zeros(3, dtype=torch.long, device=device)
            self._rates = torch.zeros(AHEAD, device=device)
            self._total, self._values = torch.zeros((), device=device), torch.zeros(2, device=device)
        self._schedule, self._ahead, self._summed, self._fresh = Schedule.constant(1.0, steps=1), 0, 0, True
        self._replay = self._recorded_step()
        self._replay_observe = self._recorded_observation()
        self.load_state_dict(start)

    # what is recorded

    def _step(self) -> None:
        """One step; everything that it reads and writes is on the device."""
        position, tick, taken = (self._counters[i : i + 1] for i in (POSITION, TICK, TAKEN))
        rate = self._rates.index_select(0, tick).squeeze()
        for place, ratio in zip(self._optimizer.rates, self.training.ratios, strict=True):
            place.copy_(rate * float(ratio))
        row = self._table.index_select(0, position % len(self._table))
        self._recent.index_copy_(0, taken % RECENT, row)
        self._total += self.training.update(self.batches.batch(row.squeeze(0))).squeeze()
        self._counters += 1

    @torch.no_grad()
    def _observe(self) -> None:
        """Values of the raw and of the averaged weights: from `evaluate`, or losses as `TorchTraining` reports them."""
        training = self.training
        if training.evaluate is not None:
            for place, (_, model) in zip(self._values, training.views(), strict=False):
                model.eval()
                place.copy_(torch.as_tensor(training.judged(model)).squeeze())
            return
        self._values[0].copy_(self._total)
        if training.average is not None:
            training.average.eval()
            batches = [self.batches.batch(row) for row in self._recent]
            losses = torch.stack([training.loss(training.average.module, batch).squeeze() for batch in batches])
            held = torch.arange(RECENT, device=losses.device) < self._counters[TAKEN]
            self._values[1].copy_(torch.where(held, losses, 0.0).sum() / held.sum())

    def _recorded_step(self) -> Callable[[], None]:
        """Record the step, and try the recording against the step itself."""
        with _refused("the step"):
            with self.lane.entered():
                usual = 0.1 * float(self._optimizer.rates[0])
                self._rates.copy_(torch.tensor([usual, 0.5 * usual] * (AHEAD // 2)))
                self._step()  # torch's optimisers make their state in the first step: it is never a recorded one
                self._optimizer.keep_places()
                places = self._places()
                with self.lane.unwaiting():  # a capture that breaks off in the middle would cost memory for good
                    self._step()
                self.lane.finish()
            replay = self.lane.record(self._step)
            if self._places() != places:
                raise NotCapturableError(
                    "the model or the optimiser puts new tensors in the place of its own: change them in place, with "
                    "copy_ or mul_"
                )
            for _ in range(TRIED):
                self._try(replay)
        return replay

    def _try(self, replay: Callable[[], None]) -> None:
        """Do one step plainly and once more by replay, from the same state; refuse the recording where they differ.

        Step by step, since what rounding and the order of sums leave open grows from one step to the next.
        """
        with self.lane.entered():
            changed = [*self._tensors(), self._counters]
            before, randomness = [tensor.clone() for tensor in changed], self.lane.random_state()
            start = self._copies()
            self._step()
            plain = self._copies()
            _assign(changed, before)
            self.lane.set_random_state(randomness)
        replay()
        self.lane.finish()
        for name, copies in self._copies().items():
            moved, off = _distance(plain[name], start[name]), _distance(plain[name], copies)
            if not np.isfinite(moved):
                raise NotCapturableError(
                    f"{name} are not finite after a few steps at rates up to {float(self._rates[0]):g}"
                )
            if off > ALIKE * moved:
                kind = type(self._optimizer.optimizer).__name__
                raise NotCapturableError(
                    f"a recording of the step does not do what the step does, {name} differ by {off:.2g} after a step "
                    f"that changes them by {moved:.2g}: {kind}, the model or `step` counts or decides on the host"
                )

    def _recorded_observation(self) -> "Callable[[], None] | None":
        """Record the observation; None where it must be made anew each time, since `evaluate` waits for a number."""
        with _refused("the evaluation"), self.lane.entered():
            self._observe()
            plain = self._values.clone()
        try:
            with self.lane.entered(), self.lane.unwaiting():
                self._observe()
            replay = self.lane.record(self._observe)
            with self.lane.entered():
                self._values.zero_()
            replay()
            self.lane.finish()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            return None
        same = torch.allclose(plain, self._values, rtol=0.01, atol=1e-6, equal_nan=True)
        return replay if same else None

    # going on

    def begin(self, schedule: Schedule) -> None:
        """Go on at the rates of a schedule."""
        self._schedule, self._ahead = schedule, 0
        self._restart()
        with self.lane.entered():
            self._counters[TAKEN].zero_()  # as in a training that is resumed, which has no batches of before

    def step(self) -> None:
        """Queue one step."""
        training, passes = self.training, self.training.passes
        if passes.position in (-1, len(self._table)):
            with training.randomness.taken():
                passes.begin()
                self._take_up(self.batches.draw())
        if self._ahead == 0:
            self._send_rates()
        if self._fresh:
            with self.lane.entered():
                self._step()
                self._optimizer.recall()
            self._fresh = False
        else:
            self._replay()
        passes.position += 1
        training.done += 1
        self._ahead -= 1
        self._summed += 1

    def observe(self) -> None:
        """Queue an observation of what the weights are now."""
        if self._replay_observe is not None:
            self._replay_observe()
            return
        with self.lane.entered():
            self._observe()

    def values(self) -> dict[str, float]:
        """Wait for the observation; what it says. The mean of the loss begins anew."""
        with self.lane.entered():
            raw, averaged = (float(value) for value in self._values.cpu())
        if self.training.evaluate is None:
            raw /= self._summed
        self._restart()
        return {"raw": raw} if self.training.average is None else {"raw": raw, "averaged": averaged}

    def _restart(self) -> None:
        self._summed = 0
        with self.lane.entered():
            self._total.zero_()

    def _send_rates(self) -> None:
        at = self.training.done + np.arange(AHEAD)
        rates = torch.tensor(self._schedule(at), dtype=torch.float32)
        with self.lane.entered():
            _send(rates, self._rates)
            self._counters[TICK].zero_()
        self._ahead = AHEAD

    def _take_up(self, table: Tensor) -> None:
        """Send what is random about a pass to the device."""
        with self.lane.entered():
            _send(table, self._table)
            self._counters[POSITION].fill_(self.training.passes.position)

    # state

    def state_dict(self) -> dict[str, Any]:
        """What the training itself would have written."""
        self.lane.finish()
        state = {**self.training.state_dict(), "optimizer": self._optimizer.state_dict()}
        return {**state, "generators": {**state["generators"], **self.lane.random_state()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy a state to where the recordings expect it."""
        training, passes = self.training, self.training.passes
        with self.lane.entered():
            training.model.load_state_dict(state["model"])
            if training.average is not None:
                training.average.load_state_dict(state["average"])
            self._optimizer.load_state_dict(state["optimizer"])
        self._fresh = not self._optimizer.begun
        training.done = int(state["done"])
        passes.place(state)
        if passes.position >= 0:
            training.randomness.state = passes.began
            with training.randomness.taken():
                self._take_up(self.batches.draw())
        training.randomness.state = state["generators"]
        self.lane.set_random_state(state["generators"])

    def clone(self, other: "Captured") -> None:
        """Be where another fork is: a copy from device to device, before the other goes on."""
        mine, theirs = self.training, other.training
        self.lane.wait_for(other.lane)
        with self.lane.entered():
            self._optimizer.match(other._optimizer)
            _assign([*self._tensors(), self._table], [*other._tensors(), other._table])
            self._counters[POSITION].fill_(theirs.passes.position)
        other.lane.wait_for(self.lane)
        self._fresh, mine.done = other._fresh, theirs.done
        mine.passes.place(theirs.passes.state_dict())
        mine.randomness.state = theirs.randomness.state
        self.lane.set_random_state(other.lane.random_state())

    def reseed(self, seed: int) -> None:
        """Start all randomness, and a new pass over the data, from this seed."""
        self.training.reseed(seed)
        self.lane.set_random_state(self.training.randomness.state)

    def _copies(self) -> dict[str, list[Tensor]]:
        """The model's weights and statistics, each of which a recording must change as the step does."""
        model = self.training.model
        named = {"weights": model.parameters(), "statistics": model.buffers()}
        return {name: [t.detach().clone() for t in ts if t.is_floating_point()] for name, ts in named.items()}

    def _places(self) -> list[int]:
        return [tensor.data_ptr() for tensor in self._tensors()]

    def _tensors(self) -> list[Tensor]:
        """All that a step changes in place."""
        models = [model for model in (self.training.model, self.training.average) if model is not None]
        return [t for model in models for t in (*model.parameters(), *model.buffers())] + self._optimizer.tensors()


@contextmanager
def _refused(what: str) -> Generator[None]:
    """Errors while something is recorded say that it cannot be; running out of memory is another matter."""
    try:
        yield
    except (PacelineError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        if "out of memory" in str(error):
            raise torch.OutOfMemoryError(str(error)) from error
        first = next(iter(str(error).splitlines()), "")
        raise NotCapturableError(f"{what} cannot be recorded ({type(error).__name__}: {first})") from error


@torch.no_grad()
def _distance(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """Euclidean; what was not finite before, a mask say, must only stay as it is."""
    squares = [torch.where(a == b, 0.0, a - b).double().square().sum() for a, b in zip(some, others, strict=True)]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


@torch.no_grad()
def _assign(targets: list[Tensor], values: list[Tensor]) -> None:
    for target, value in zip(targets, values, strict=True):
        target.copy_(value, non_blocking=True)


def _send(values: Tensor, target: Tensor) -> None:
    """From the host to the device without a wait: from memory that is pinned, where it is a GPU."""
    target.copy_(values.pin_memory() if target.is_cuda else values, non_blocking=True)
