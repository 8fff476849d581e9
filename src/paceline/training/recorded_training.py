"""A torch training whose steps are replayed from a recording.

The whole step is recorded once: gathering the batch, forward, backward, the optimiser, the average of the weights. The
rate, the position in the data and the counters are on the device. So a step costs the host one replay, and the host
waits only for observations.

A recording repeats what the device did, not what Python did. So the recorded step is compared with the plain one, from
the same state and at rates that change from step to step. If the host counts something or takes a branch, the weights
differ, and the training is refused with the reason.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from paceline.traces import Schedule
from paceline.training.device_optimizer import DeviceOptimizer
from paceline.training.protocol import Observation, StepTimes, values_by_weights
from paceline.training.randomness import preserve_random_state
from paceline.training.recordable import NotRecordableError, check_recordable, recording
from paceline.training.state_copy import copy_state
from paceline.training.state_layout import flatten_state, restore_state
from paceline.training.torch_training import RECENT_BATCHES, TorchTraining
from paceline.training.work_stream import WorkStream

# counters on the device: batches of the epoch, rates used since they were last sent, steps since the interval began
EPOCH_POSITION, RATE_INDEX, INTERVAL_STEPS = range(3)
RATES_SENT = 512  # at a time
COMPARED_STEPS = 3  # on which a recording is compared with the plain step
TRIAL_STEPS = 10  # that are timed before a study
TOLERANCE = 0.05  # how far weights may differ after a trial step, as a share of how far the step moved them


class RecordedTraining:
    """One fork of a training, recorded.

    Args:
        training: on one device, with `DeviceBatches`; from now on its state is this fork's.
        stream: the queue of the fork's work.
    """

    def __init__(self, training: TorchTraining, stream: WorkStream) -> None:
        self.training, self.batches = check_recordable(training)
        self.stream = stream
        start = restore_state(flatten_state(training.state_dict()))  # on the host: the GPU may have no room for two
        device = self.batches.device
        self._optimizer = DeviceOptimizer(training.optimizer, device)
        with training.randomness.activate():
            table = self.batches.draw_table()
        with stream.activate():
            self._table = table.to(device)
            self._recent = torch.zeros((RECENT_BATCHES, *self._table.shape[1:]), dtype=torch.long, device=device)
            self._counters = torch.zeros(3, dtype=torch.long, device=device)
            self._rates = torch.zeros(RATES_SENT, device=device)
            self._loss_sum, self._values = torch.zeros((), device=device), torch.zeros(2, device=device)
            self._first_loss = torch.zeros((), device=device)
        self._schedule, self._rates_left = Schedule.constant(1.0, steps=1), 0
        self._losses_summed = 0
        self._needs_plain_step = True  # torch's optimisers make their state in their first step
        self._replay_step = self._record_step()
        self._replay_observation = self._record_observation()
        self.load_state_dict(start)

    def _step(self) -> None:
        """One step. Everything that it reads and writes is on the device."""
        position, rate_index, taken = (self._counters[i : i + 1] for i in (EPOCH_POSITION, RATE_INDEX, INTERVAL_STEPS))
        rate = self._rates.index_select(0, rate_index).squeeze()
        for group_rate, ratio in zip(self._optimizer.rates, self.training.rate_ratios, strict=True):
            group_rate.copy_(rate * float(ratio))
        row = self._table.index_select(0, position % len(self._table))
        self._recent.index_copy_(0, taken % RECENT_BATCHES, row)
        self._loss_sum += self.training.update(self.batches.gather(row.squeeze(0))).squeeze()
        self._counters += 1

    @torch.no_grad()
    def _observe(self) -> None:
        """Values of the raw and of the averaged weights, as `TorchTraining` reports them."""
        training = self.training
        if training.evaluate is not None:
            for place, (_, model) in zip(self._values, training.models(), strict=False):
                model.eval()
                place.copy_(torch.as_tensor(training.evaluate_model(model)).squeeze())
            return
        self._values[0].copy_(self._loss_sum)
        if training.average is not None:
            training.average.eval()
            batches = [self.batches.gather(row) for row in self._recent]
            losses = torch.stack([training.loss(training.average.module, batch).squeeze() for batch in batches])
            used = torch.arange(RECENT_BATCHES, device=losses.device) < self._counters[INTERVAL_STEPS]
            self._values[1].copy_(torch.where(used, losses, 0.0).sum() / used.sum())

    def _record_step(self) -> Callable[[], None]:
        """Record the step, and compare the recording with the plain step."""
        with recording("the step"):
            with self.stream.activate():
                rate = 0.1 * float(self._optimizer.rates[0])
                self._rates.copy_(torch.tensor([rate, 0.5 * rate] * (RATES_SENT // 2)))
                self._step()  # makes the optimiser's state; never recorded
                self._optimizer.fix_buffers()
                addresses = self._addresses()
                with self.stream.forbid_sync():  # a capture that fails midway would leak memory for good
                    self._step()
                self.stream.synchronize()
            replay = self.stream.record(self._step)
            if self._addresses() != addresses:
                raise NotRecordableError(
                    "the model or the optimiser replaces its tensors by new ones: change them in place, with copy_ or "
                    "mul_"
                )
            for _ in range(COMPARED_STEPS):
                self._compare_with_plain_step(replay)
        return replay

    def _compare_with_plain_step(self, replay: Callable[[], None]) -> None:
        """Do one step plainly and again by replay, from the same state; refuse the recording if they differ.

        Each step starts from the same state, because differences of rounding and of the order of sums grow from step to
        step.
        """
        with self.stream.activate():
            changed = [*self._tensors(), self._counters]
            before, random_state = [tensor.clone() for tensor in changed], self.stream.random_state()
            start = self._copies()
            self._step()
            plain = self._copies()
            _assign(changed, before)
            self.stream.set_random_state(random_state)
        replay()
        self.stream.synchronize()
        for name, replayed in self._copies().items():
            change, difference = _distance(plain[name], start[name]), _distance(plain[name], replayed)
            if not np.isfinite(change):
                raise NotRecordableError(
                    f"{name} are not finite after a few steps at rates up to {float(self._rates[0]):g}"
                )
            if difference > TOLERANCE * change:
                kind = type(self._optimizer.optimizer).__name__
                raise NotRecordableError(
                    f"a recording of the step gives different {name} than the step: they differ by {difference:.2g} "
                    f"after a step that changes them by {change:.2g}. {kind}, the model or `step` counts or decides on "
                    "the host"
                )

    def _record_observation(self) -> "Callable[[], None] | None":
        """Record the observation. None if it cannot be recorded, because `evaluate` waits for a number."""
        with recording("the evaluation"), self.stream.activate():
            self._observe()
            plain = self._values.clone()
        try:
            with self.stream.activate(), self.stream.forbid_sync():
                self._observe()
            replay = self.stream.record(self._observe)
            with self.stream.activate():
                self._values.zero_()
            replay()
            self.stream.synchronize()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            return None
        same = torch.allclose(plain, self._values, rtol=0.01, atol=1e-6, equal_nan=True)
        return replay if same else None

    def measure(self) -> None:
        """Evaluate the untrained weights, and time this and a few steps, as `TorchTraining.measure` does."""
        training = self.training
        if training.steps_done or training.untrained is not None:
            return
        evaluation = 0.0
        if training.evaluate is not None:
            self.stream.synchronize()
            began = time.perf_counter()
            self.observe()
            training.untrained = values_by_weights(self.observations()[-1][1])
            evaluation = time.perf_counter() - began
        start = restore_state(flatten_state(self.state_dict()))
        self.begin(Schedule.constant(float(self._optimizer.rates[0]), steps=1 + TRIAL_STEPS))
        self.step()
        self.stream.synchronize()
        began = time.perf_counter()
        for _ in range(TRIAL_STEPS):
            self.step()
        self.stream.synchronize()
        training.step_times = StepTimes((time.perf_counter() - began) / TRIAL_STEPS, evaluation)
        self.load_state_dict(start)
        if training.evaluate is not None:
            training.observations = training.observations.with_cost(evaluation / training.step_times.step)

    def begin(self, schedule: Schedule) -> None:
        """Begin an interval at the rates of a schedule."""
        self._schedule, self._rates_left = schedule, 0
        self._reset_loss()
        with self.stream.activate():
            self._counters[INTERVAL_STEPS].zero_()  # a resumed training has no recent batches either

    def step(self) -> None:
        """Queue one step."""
        training, batches = self.training, self.training.batches
        if batches.position in (-1, len(self._table)):
            with training.randomness.activate():
                batches.begin_epoch()
                self._send_table(self.batches.draw_table())
        if self._rates_left == 0:
            self._send_rates()
        if self._needs_plain_step:
            with self.stream.activate():
                self._step()
                self._optimizer.return_to_buffers()
            self._needs_plain_step = False
        else:
            self._replay_step()
        if training.steps_done == 0:
            with self.stream.activate():
                self._first_loss.copy_(self._loss_sum)
        batches.position += 1
        training.steps_done += 1
        self._rates_left -= 1
        self._losses_summed += 1

    def observe(self) -> None:
        """Queue an observation of the present weights. Random numbers that it draws are not taken from the training."""
        with self.stream.activate(), preserve_random_state():
            (self._replay_observation or self._observe)()

    def observations(self) -> list[Observation]:
        """Wait for the observation, and return it. The mean training loss starts anew.

        Without `evaluate`, the one of step 0 is returned with the first that follows, as `TorchTraining` reports it.
        """
        training, steps = self.training, self.training.steps_done
        with self.stream.activate():
            raw, averaged = (float(value) for value in self._values.cpu())
            first_loss = float(self._first_loss)
        at_start: list[Observation] = []
        if training.evaluate is None:
            at_start = [(0, training.untrained_values(first_loss))] if steps == self._losses_summed else []
            raw /= self._losses_summed
        self._reset_loss()
        return [*at_start, (steps, {"raw": raw} if training.average is None else {"raw": raw, "averaged": averaged})]

    def _reset_loss(self) -> None:
        self._losses_summed = 0
        with self.stream.activate():
            self._loss_sum.zero_()

    def _send_rates(self) -> None:
        steps = self.training.steps_done + np.arange(RATES_SENT)
        rates = torch.tensor(self._schedule(steps), dtype=torch.float32)
        with self.stream.activate():
            _send(rates, self._rates)
            self._counters[RATE_INDEX].zero_()
        self._rates_left = RATES_SENT

    def _send_table(self, table: Tensor) -> None:
        """Send the random numbers of an epoch to the device."""
        with self.stream.activate():
            _send(table, self._table)
            self._counters[EPOCH_POSITION].fill_(self.training.batches.position)

    def state_dict(self) -> dict[str, Any]:
        """The state that the training itself would have written."""
        self.stream.synchronize()
        state = {**self.training.state_dict(), "optimizer": self._optimizer.state_dict()}
        return {**state, "generators": {**state["generators"], **self.stream.random_state()}}

    def copy_state(self) -> dict[str, Any]:
        """A copy of the state, made in the stream, so that the next step comes after it."""
        state = self.state_dict()
        with self.stream.activate():
            return copy_state(state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy a state into the tensors that the recordings use."""
        training, batches = self.training, self.training.batches
        with self.stream.activate():
            training.model.load_state_dict(state["model"])
            if training.average is not None:
                training.average.load_state_dict(state["average"])
            self._optimizer.load_state_dict(state["optimizer"])
        self._needs_plain_step = not self._optimizer.has_state
        training.steps_done = int(state["done"])
        training.load_observations(state)
        batches.set_position(state)
        if batches.position >= 0:
            training.randomness.state = batches.epoch_random_state
            with training.randomness.activate():
                self._send_table(self.batches.draw_table())
        training.randomness.state = state["generators"]
        self.stream.set_random_state(state["generators"])

    def clone(self, other: "RecordedTraining") -> None:
        """Take over another fork's state by copies on the device. Call it before the other fork continues."""
        self.stream.wait_for(other.stream)
        with self.stream.activate():
            self._optimizer.match_state(other._optimizer)
            _assign([*self._tensors(), self._table], [*other._tensors(), other._table])
            self._counters[EPOCH_POSITION].fill_(other.training.batches.position)
        other.stream.wait_for(self.stream)
        self._needs_plain_step = other._needs_plain_step
        self.training.steps_done = other.training.steps_done
        self.training.observations, self.training.untrained = other.training.observations, other.training.untrained
        self.training.batches.set_position(other.training.batches.state_dict())
        self.training.randomness.state = other.training.randomness.state
        self.stream.set_random_state(other.stream.random_state())

    def reseed(self, seed: int) -> None:
        """Start all random numbers from this seed, and a new epoch."""
        self.training.reseed(seed)
        self.stream.set_random_state(self.training.randomness.state)

    def _copies(self) -> dict[str, list[Tensor]]:
        """Copies of the model's weights and statistics, each of which a recording must change as the step does."""
        model = self.training.model
        named = {"weights": model.parameters(), "statistics": model.buffers()}
        return {name: [t.detach().clone() for t in ts if t.is_floating_point()] for name, ts in named.items()}

    def _addresses(self) -> list[int]:
        return [tensor.data_ptr() for tensor in self._tensors()]

    def _tensors(self) -> list[Tensor]:
        """All tensors that a step changes in place."""
        models = [model for model in (self.training.model, self.training.average) if model is not None]
        tensors = [t for model in models for t in (*model.parameters(), *model.buffers())]
        return tensors + self._optimizer.state_tensors()


@torch.no_grad()
def _distance(some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """The Euclidean distance. Elements that are equal count as zero, also if they are not finite, as in a mask."""
    squares = [torch.where(a == b, 0.0, a - b).double().square().sum() for a, b in zip(some, others, strict=True)]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


@torch.no_grad()
def _assign(targets: list[Tensor], values: list[Tensor]) -> None:
    for target, value in zip(targets, values, strict=True):
        target.copy_(value, non_blocking=True)


def _send(values: Tensor, target: Tensor) -> None:
    """Copy from the host to the device without waiting, which on a GPU needs pinned memory."""
    target.copy_(values.pin_memory() if target.is_cuda else values, non_blocking=True)
