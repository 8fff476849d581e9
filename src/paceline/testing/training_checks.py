"""Checks of a training: it follows the schedule, repeats itself, and continues from its state as if never stopped."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from paceline.errors import ConformanceError, InputError, TrainingError
from paceline.testing.run_comparison import Observations, different_entry, different_observation
from paceline.traces import Schedule
from paceline.training import (
    Reseedable,
    Training,
    load_checkpoint,
    preserve_random_state,
    save_checkpoint,
    values_by_weights,
)

OTHER_RATE = 1 / 3  # the rate that must make a difference, as a factor
FIRST_SEED = 7


def check_training(
    make_training: Callable[[], Training], *, steps: int = 40, rate: float = 0.01, tolerance: float = 0.0
) -> None:
    """Check that runs of a training can be tuned: about ten runs are trained.

    Args:
        make_training: builds one run, as for `paceline.tune`.
        steps: updates of each run; at least 4, and enough for a few observations.
        rate: a learning rate at which these steps are stable.
        tolerance: relative difference of numbers that count as equal. It is 0 on a CPU. A GPU that adds numbers in an
            order of its own needs more, such as 1e-3.
    """
    if steps < 4:
        raise InputError(f"steps must be at least 4, got {steps}: runs are paused half-way")
    with TemporaryDirectory(prefix="paceline-check-") as folder, preserve_random_state():
        case = _Case(make_training, steps, Schedule.constant(rate, 2 * steps), tolerance, Path(folder))
        run = _check_observations(case)
        _check_repeats(case, run)
        _check_follows_schedule(case, run)
        _check_continues(case)
        _check_reseed(case)


@dataclass(frozen=True)
class _Run:
    """A run that was trained, and what it reported the last time that it went on."""

    training: Training
    observations: Observations

    @property
    def state(self) -> dict[str, Any]:
        """Its state now; a check asks for it once the run is over."""
        return self.training.state_dict()


@dataclass(frozen=True)
class _Case:
    make_training: Callable[[], Training]
    steps: int
    schedule: Schedule
    tolerance: float
    folder: Path
    global_seeds: Iterator[int] = field(default_factory=count)

    @property
    def pause(self) -> int:
        return self.steps // 2

    def make(self) -> Training:
        """A new run. The global random numbers differ from run to run, as in the processes of a study."""
        training = self.make_training()
        if not isinstance(training, Training):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConformanceError(
                "make_training must return an object with advance, state_dict and load_state_dict, got "
                f"{type(training).__name__}: add the methods that are missing"
            )
        if isinstance(training, Reseedable):
            training.reseed(FIRST_SEED)
        return training

    def run(self, schedule: Schedule, training: Training | None = None, stop: int | None = None) -> _Run:
        """Train a new run, or continue one."""
        own = self.make() if training is None else training
        self.disturb_global_random_numbers()
        return _Run(own, list(own.advance(schedule, stop or self.steps)))

    def disturb_global_random_numbers(self) -> None:
        """Leave the global generators in another state for each run, since others use them too."""
        seed = next(self.global_seeds)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  the point is that it is the global one
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]

    def save(self, training: Training) -> Path:
        """Write the state as a study does."""
        path = self.folder / "state.pt"
        state = training.state_dict()
        try:
            save_checkpoint(state, path)
            load_checkpoint(path)
        except (TrainingError, TypeError, ValueError) as error:
            raise ConformanceError(
                f"state_dict returned what a checkpoint cannot hold ({error}): return tensors, arrays, numbers, "
                "strings, lists and dicts only"
            ) from error
        return path

    def load(self, training: Training, path: Path) -> None:
        """Continue from a state on disk."""
        try:
            training.load_state_dict(load_checkpoint(path))
        except Exception as error:
            raise ConformanceError(
                f"load_state_dict raised {type(error).__name__} on what state_dict returned ({error}): tensors come "
                "back on the CPU, tuples as lists; convert them"
            ) from error


def _check_observations(case: _Case) -> _Run:
    """One run from its beginning to its end, to compare others with."""
    run = case.run(case.schedule)
    if not run.observations:
        raise ConformanceError(
            f"advance yielded nothing up to step {case.steps:,}: yield (steps done, value) as it trains, a study "
            "cannot judge a fork without values"
        )
    before = -1  # a run may be observed before its first update
    for observation in run.observations:
        _check_observation(observation, before, case.steps)
        before = int(observation[0])
    if before != case.steps:
        raise ConformanceError(
            f"advance(schedule, {case.steps}) yielded its last value at step {before:,}: train to `stop` and yield a "
            "value there, forks are compared by their values at the same step"
        )
    weights = {tuple(sorted(values_by_weights(value))) for _, value in run.observations}
    if len(weights) > 1:
        raise ConformanceError(
            f"the values of one run are of {' and of '.join(', '.join(one) for one in sorted(weights))} weights: yield "
            "the same ones each time"
        )
    return run


def _check_observation(observation: Any, before: int, stop: int) -> None:
    if not isinstance(observation, tuple) or len(observation) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise ConformanceError(f"advance yielded {observation!r}: yield pairs of (steps done, value)")
    step, value = observation  # pyright: ignore[reportUnknownVariableType]
    if int(step) != step or not before < step <= stop:  # pyright: ignore[reportUnknownArgumentType]
        raise ConformanceError(
            f"advance yielded step {step!r} after {max(before, 0)}, on the way to {stop}: yield the number of updates "
            "since the beginning of the run, each number once, none above `stop`"
        )
    values: dict[str, Any] = values_by_weights(value)  # pyright: ignore[reportUnknownArgumentType]
    if not values or set(values) - {"raw", "averaged"}:
        raise ConformanceError(
            f'advance yielded {value!r} at step {step}: yield a number, or a dict with "raw", "averaged" or both'
        )
    for number in values.values():
        if not np.isfinite(float(number)):
            raise ConformanceError(
                f"the value at step {step} is {float(number)}: pass a `rate` at which the training is stable"
            )


def _check_repeats(case: _Case, whole: _Run) -> None:
    again = case.run(case.schedule)
    difference = different_observation(whole.observations, again.observations, case.tolerance)
    if difference:
        raise ConformanceError(
            f"two runs from the factory differ under the same schedule: {difference}. Seed everything that the factory "
            "and advance draw (weights, order of batches, dropout), with generators of its own or whose state it "
            "saves; the global generators are used by others too"
        )


def _check_follows_schedule(case: _Case, whole: _Run) -> None:
    rate, steps = case.schedule(0), case.steps
    other = case.run(Schedule.constant(OTHER_RATE * rate, 2 * steps))
    if not _differ(whole, other, case.tolerance):
        raise ConformanceError(
            f"runs at rates {rate:.3g} and {OTHER_RATE * rate:.3g} end in the same state: set the learning rate of "
            "update t to schedule(t)"
        )
    last = case.run(Schedule([rate, OTHER_RATE * rate], [0, steps - 1, 2 * steps]))
    if not _differ(whole, last, case.tolerance):
        raise ConformanceError(
            f"the rate of the last update makes no difference: update number t is made at schedule(t), so the last "
            f"one at schedule({steps - 1}) before advance(schedule, {steps}) ends"
        )
    after = case.run(Schedule([rate, OTHER_RATE * rate], [0, steps, 2 * steps]))
    difference = different_observation(whole.observations, after.observations, case.tolerance)
    if difference:
        raise ConformanceError(
            f"advance(schedule, {steps}) follows the rate at step {steps}, which it does not reach ({difference}): "
            f"make the updates 0 to {steps - 1} at schedule(0) to schedule({steps - 1})"
        )


def _differ(first: _Run, second: _Run, tolerance: float) -> bool:
    return bool(
        different_observation(first.observations, second.observations, tolerance)
        or different_entry(first.state, second.state, tolerance)
    )


def _check_continues(case: _Case) -> None:
    """From its saved state a run continues like one that paused at the same step and was never saved."""
    paused = case.run(case.schedule, stop=case.pause)
    whole = case.run(case.schedule, paused.training)
    first = case.run(case.schedule, stop=case.pause)
    path = case.save(first.training)
    onward = case.run(case.schedule, first.training)
    problem = "a run whose state was saved continues differently from one whose state was not"
    _compare(case, whole, onward, problem, "state_dict must not change the run")
    fresh = case.make()
    case.load(fresh, path)
    _check_remembers_step(case, fresh, path)
    fresh = case.make()
    case.load(fresh, path)
    resumed = case.run(case.schedule, fresh)
    advice = (
        "the state lacks something that decides how the run continues: the optimiser's state, the step, the average, "
        "the place in the data or the random generators"
    )
    problem = "a run that continues from its saved state differs from one that never stopped"
    _compare(case, whole, resumed, problem, advice)
    used = case.make()
    _abandon(used.advance(Schedule.constant(OTHER_RATE * case.schedule(0), 2 * case.steps), case.steps))
    case.load(used, path)
    reused = case.run(case.schedule, used)
    advice = (
        "load_state_dict leaves something of the earlier run in place: replace all of it, forks take turns in one "
        "training and a fork that fails is left in the middle of an interval"
    )
    problem = "a training that was used by another run before continues differently"
    _compare(case, whole, reused, problem, advice)


def _abandon(observations: Any) -> None:
    """Stop a run in the middle, as a runner does at a value that is not finite."""
    next(iter(observations), None)
    if hasattr(observations, "close"):
        observations.close()


def _check_remembers_step(case: _Case, training: Training, path: Path) -> None:
    steps = [int(step) for step, _ in training.advance(case.schedule, case.steps)]
    if not steps or steps[0] <= case.pause or steps[-1] != case.steps:
        got = f"steps {steps[0]:,} to {steps[-1]:,}" if steps else "nothing"
        raise ConformanceError(
            f"from its state at step {case.pause:,}, advance(schedule, {case.steps}) yielded {got}: keep the number of "
            "updates done in the state, and train on from there"
        )


def _compare(case: _Case, whole: _Run, other: _Run, problem: str, advice: str) -> None:
    difference = different_observation(other.observations, whole.observations, case.tolerance)
    if difference:
        raise ConformanceError(f"{problem}: {difference}; {advice}")
    entry = different_entry(whole.state, other.state, case.tolerance)
    if entry:
        raise ConformanceError(f"{problem}: its state differs in {entry!r} at step {case.steps:,}; {advice}")


def _check_reseed(case: _Case) -> None:
    """The same seed gives the same random numbers, whatever was drawn before, and leaves the weights alone."""
    first = case.run(case.schedule, stop=case.pause)
    if not isinstance(first.training, Reseedable):
        return
    path, runs = case.save(first.training), list[_Run]()
    for used in (False, True):
        training = case.make()
        if used:
            list(training.advance(case.schedule, case.pause // 2 + 1))
        case.load(training, path)
        assert isinstance(training, Reseedable)
        training.reseed(FIRST_SEED + 1)
        runs.append(case.run(case.schedule, training))
    difference = different_observation(runs[0].observations, runs[1].observations, case.tolerance)
    if difference:
        raise ConformanceError(
            f"two clones of one state with the same seed differ: {difference}; reseed must restart all random numbers "
            "anew from the seed alone"
        )
    steps = [int(step) for step, _ in runs[0].observations]
    if not steps or steps[0] <= case.pause or steps[-1] != case.steps:
        raise ConformanceError(
            f"after reseed, a run at step {case.pause:,} does not continue from there: reseed restarts random numbers, "
            "and nothing else"
        )
