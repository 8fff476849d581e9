"""A torch model, its optimiser and its data as a training that can be forked.

The state holds everything that decides how a run continues: weights, their average, the optimiser, a gradient scaler,
the random generators and the position in the data. On the CPU, a fork resumed from its checkpoint continues bit for
bit.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from paceline.errors import InputError
from paceline.traces import Schedule
from paceline.training.averaging import AVERAGE_SHARE, WeightAverage
from paceline.training.epochs import steps_between
from paceline.training.observation_plan import EVALUATE_SHARE, ObservationPlan
from paceline.training.protocol import ExpectedTime, Observation, StepTimes
from paceline.training.randomness import Randomness, preserve_random_state
from paceline.training.rates import rate_ratios, set_rates
from paceline.training.resumable_batches import ResumableBatches
from paceline.training.returned_values import check_evaluation, check_loss, check_step, loss_that_is_not_needed
from paceline.training.state_copy import copy_state

RECENT_BATCHES = 4  # without `evaluate`, the averaged weights are judged by this many of the latest batches
RECENT_COST = RECENT_BATCHES / 3  # in steps: a forward pass is about a third of one
TRIAL_STEPS = 5  # that are timed before a study

Loss = Callable[[nn.Module, Any], Tensor]
Step = Callable[[nn.Module, Optimizer, Any], "Tensor | float"]


class TorchTraining:
    """One training run of a torch model.

    Args:
        model: the model.
        optimizer: any torch optimiser over its parameters; its groups keep the ratio of their rates to the first
            group's.
        batches: a DataLoader, or any iterable that starts anew each time it is iterated. Use `DeviceBatches` for data
            on a GPU.
        loss: loss(model, batch) -> scalar. Not needed if there are both `step` and `evaluate`.
        evaluate: evaluate(model) -> a number or a tensor, on a fixed set; called with the raw and with the averaged
            weights. It may seed and draw random numbers: training goes on with its own. Without it, the first value is
            the loss of the first batch before the first update. After that the raw value is the mean training loss
            since the last observation, and the averaged value is the loss of the averaged weights on the latest
            batches.
        step: step(model, optimizer, batch) -> loss, for updates that do more than a backward pass and a step:
            clipping, mixed precision, several losses.
        every: steps between observations, or epochs: `every="1 epoch"`. By default a run has about 40 evaluations, more
            just before decisions, or as many as `evaluate_share` allows. Without `evaluate` it has up to 200
            observations.
        evaluate_share: share of the time that evaluations may take. Each decision needs one at least. How long they
            take is measured once, at the start of a study.
        average: share of the steps so far that the average of the weights covers; None turns it off.
        scaler: a gradient scaler that `step` uses, so that checkpoints include it.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        *,
        batches: Iterable[Any],
        loss: "Loss | None" = None,
        evaluate: "Callable[[nn.Module], float | Tensor] | None" = None,
        step: "Step | None" = None,
        every: int | str | None = None,
        evaluate_share: float = EVALUATE_SHARE,
        average: float | None = AVERAGE_SHARE,
        scaler: Any = None,
    ) -> None:
        if loss is None and (step is None or evaluate is None):
            raise InputError("loss= is missing: pass loss(model, batch), or both step= and evaluate=")
        self.observations = ObservationPlan(evaluate is not None, steps_between(every, batches), evaluate_share)
        if evaluate is None and average is not None:
            self.observations = self.observations.with_cost(RECENT_COST)
        self.model, self.optimizer = model, optimizer
        self.loss: Loss = loss_that_is_not_needed if loss is None else loss
        self.evaluate, self.step, self.scaler = evaluate, step, scaler
        self.average = WeightAverage(model, average) if average is not None else None
        self.rate_ratios = rate_ratios(optimizer)
        _check_parameters(model, optimizer)
        self.steps_done = 0
        self.randomness = Randomness()
        self.batches = ResumableBatches(batches, self.randomness)
        self.untrained: dict[str, float] | None = None  # the values of `evaluate` before the first step, if known
        self.step_times: StepTimes | None = None
        self.seconds = {"evaluation": 0.0, "loading": 0.0}
        self._recent: deque[Any] = deque(maxlen=RECENT_BATCHES)

    def measure(self) -> None:
        """Evaluate the untrained weights, and time this and a few steps. All else is left as it was.

        A study calls it once, before the first state is saved. What is found belongs to the state, so that forks need
        not do it again and are all observed at the same steps. An error is left to the forks, which will meet it too.
        """
        if self.steps_done or self.untrained is not None:
            return
        start, evaluation = copy_state(self.state_dict()), 0.0
        try:
            if self.evaluate is not None:
                with self.randomness.activate():
                    self.untrained = self._evaluation()
                evaluation, start = self.seconds["evaluation"], copy_state(self.state_dict())
            self.step_times = StepTimes(self._time_steps(), evaluation)
        except Exception:
            self.step_times = None
        finally:
            self.load_state_dict(start)
            self.optimizer.zero_grad()
            self.seconds = dict.fromkeys(self.seconds, 0.0)
        if self.evaluate is not None and self.step_times is not None:
            self.observations = self.observations.with_cost(evaluation / self.step_times.step)

    def expected_seconds(self, intervals: Sequence[tuple[int, int, int]], steps: int) -> ExpectedTime | None:
        """How long a study of runs of `steps` takes; None if nothing was measured.

        Each interval is how many forks train from which step to which.
        """
        if self.step_times is None:
            return None
        trained = sum(forks * (stop - start) for forks, start, stop in intervals)
        count = sum(forks * self.observations.count(start, stop, steps) for forks, start, stop in intervals)
        return ExpectedTime(trained * self.step_times.step, count * self.step_times.evaluation, count)

    def _time_steps(self) -> float:
        """Seconds of a step, from a few of them at the optimiser's own rates. The first one warms up."""
        seconds = list[float]()
        with self.randomness.activate():
            for _ in range(TRIAL_STEPS):
                began = time.perf_counter()
                self.update(self.batches.next())
                self._synchronize()
                self.steps_done += 1
                seconds.append(time.perf_counter() - began)
        return median(seconds[1:])

    def advance(self, schedule: Schedule, stop: int) -> Iterator[Observation]:
        """Train to step `stop`; yield raw and averaged values on the way and at `stop`."""
        # checkpoints hold no batches, so a run that continues must forget them as a resumed one does
        self._recent.clear()
        self.batches.begin_interval()
        if self.steps_done == 0 and self.evaluate is not None:
            if self.untrained is None:
                with self.randomness.activate():
                    self.untrained = self._evaluation()
            yield 0, self.untrained
        while self.steps_done < stop:
            with self.randomness.activate():
                target = self.next_observation(schedule, stop)
                losses = [self._train_step(schedule) for _ in range(target - self.steps_done)]
                value = self._training_losses(losses) if self.evaluate is None else self._evaluation()
            if self.steps_done == len(losses) and self.evaluate is None:
                yield 0, self.untrained_values(float(losses[0]))
            yield self.steps_done, value

    def _train_step(self, schedule: Schedule) -> Tensor:
        """One update at the schedule's rate; returns the loss before it."""
        set_rates(self.optimizer, schedule(self.steps_done) * self.rate_ratios)
        began = time.perf_counter()
        batch = self.batches.next()
        self.seconds["loading"] += time.perf_counter() - began
        if self.average is not None and self.evaluate is None:
            self._recent.append(batch)
        loss = self.update(batch)
        self.steps_done += 1
        return loss

    def update(self, batch: Any) -> Tensor:
        """One update of the weights and of their average, at the optimiser's rates; returns the loss before it."""
        if not self.model.training:  # this goes through all modules
            self.model.train()
        if self.step is not None:
            loss = check_step(self.step(self.model, self.optimizer, batch))
        else:
            self.optimizer.zero_grad()
            loss = check_loss(self.loss(self.model, batch))
            loss.backward()  # pyright: ignore[reportUnknownMemberType]
            self.optimizer.step()  # pyright: ignore[reportUnknownMemberType]
        if self.average is not None:
            self.average.update(self.model)
        return loss.detach().float()  # stays on its device, so the host does not wait for it

    def next_observation(self, schedule: Schedule, stop: int) -> int:
        """The step of the next observation, at `stop` at the latest."""
        return self.observations.next(self.steps_done, schedule, stop)

    @torch.no_grad()
    def _evaluation(self) -> dict[str, float]:
        """The values of `evaluate`, by weights."""
        values: dict[str, float] = {}
        self._synchronize()  # steps that are queued are not part of it
        began = time.perf_counter()
        for name, model in self.models():
            model.eval()
            with preserve_random_state():  # it may seed them, and the next batches would be drawn from that seed
                values[name] = float(self.evaluate_model(model))
        self.seconds["evaluation"] += time.perf_counter() - began
        return values

    def _synchronize(self) -> None:
        """Wait for the device."""
        device = next(self.model.parameters()).device
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    def untrained_values(self, loss: float) -> dict[str, float]:
        """Without `evaluate`: the values before the first update, when the average is the weights themselves."""
        return {name: loss for name, _ in self.models()}

    def _training_losses(self, losses: list[Tensor]) -> dict[str, float]:
        """Without `evaluate`: the mean training loss, and the loss of the averaged weights on the latest batches."""
        raw = float(sum(losses)) / len(losses)
        if self.average is None:
            return {"raw": raw}
        self.average.eval()
        with torch.no_grad():
            averaged = [float(self.loss(self.average.module, batch)) for batch in self._recent]
        return {"raw": raw, "averaged": float(np.mean(averaged))}

    def evaluate_model(self, model: nn.Module) -> "float | Tensor":
        """What `evaluate` returns for a model, checked to be one number. A tensor stays on its device."""
        assert self.evaluate is not None
        return check_evaluation(self.evaluate(model))

    @property
    def evaluates(self) -> bool:
        """Whether runs are judged by `evaluate`, not by the training loss."""
        return self.evaluate is not None

    def models(self) -> list[tuple[str, nn.Module]]:
        """The models that are evaluated, by the name of their weights."""
        return [("raw", self.model)] + ([("averaged", self.average.module)] if self.average is not None else [])

    def state_dict(self) -> dict[str, Any]:
        """Everything that decides how the run continues."""
        return {
            "done": self.steps_done,
            "model": self.model.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict() if self.scaler is not None else {},
            "generators": self.randomness.state,
            "observations": self.observations.state_dict(),
            **({"untrained": self.untrained} if self.steps_done == 0 and self.untrained is not None else {}),
            **self.batches.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of a training of the same kind."""
        self.model.load_state_dict(state["model"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])
        self.steps_done = int(state["done"])
        self.load_observations(state)
        self.batches.load_state_dict(state)
        self.randomness.state = state["generators"]

    def load_observations(self, state: dict[str, Any]) -> None:
        """Take over what a state holds about observations."""
        self.observations = self.observations.with_state(state.get("observations"))
        self.untrained = state.get("untrained")

    def reseed(self, seed: int) -> None:
        """Start all random numbers from this seed, and a new epoch."""
        with self.randomness.activate():
            self.batches.restart(seed)
        self.randomness.reseed(seed)


def _check_parameters(model: nn.Module, optimizer: Optimizer) -> None:
    """Refuse an optimiser of another model: it would change nothing here."""
    model_parameters = {id(parameter) for parameter in model.parameters()}
    optimized = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    if model_parameters.isdisjoint(optimized):
        raise InputError(
            "expected an optimiser of the model's parameters, got one that holds none of them: build both in the same "
            "function, the optimiser with model.parameters()"
        )
