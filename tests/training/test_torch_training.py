"""Exact state: a fork resumed from its checkpoint continues bit for bit."""

import random
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from paceline import Schedule
from paceline.errors import InputError
from paceline.training import TorchTraining, same_states
from tests.training.example_trainings import small_network
from tests.training.resuming import resumed

SCHEDULE = Schedule.of("linear", 1e-2, 40)


def test_an_optimiser_of_another_model_is_refused() -> None:
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    with pytest.raises(InputError, match="got one that holds none of them: build both in the same function"):
        TorchTraining(model, torch.optim.SGD(other.parameters()), batches=[], loss=lambda model, batch: model(batch))


def run(training: TorchTraining, stop: int) -> list:
    return list(training.advance(SCHEDULE, stop))


@pytest.mark.parametrize("loader", [True, False])
@pytest.mark.parametrize("optimiser", ["adam", "sgd", "adamw"])
@pytest.mark.parametrize("pause", [1, 3, 4, 17, 39])
def test_resumed_from_a_checkpoint_it_continues_bit_for_bit(tmp_path, optimiser: str, loader: bool, pause: int) -> None:
    whole, _, second, _ = resumed(lambda: small_network(optimiser, loader=loader), SCHEDULE, tmp_path, pause)
    for a, b in zip(whole.model.state_dict().values(), second.model.state_dict().values(), strict=True):
        assert bool((a == b).all())


@pytest.mark.parametrize("pause", [3, 9, 13])
def test_without_evaluate_a_resumed_run_observes_what_one_that_goes_on_does(pause: int) -> None:
    first, second = small_network(evaluate=False, every=2), small_network(evaluate=False, every=2)
    first.reseed(7)
    run(first, pause)
    second.load_state_dict(deepcopy(first.state_dict()))
    assert run(first, 20) == run(second, 20)


def test_the_last_mean_loss_of_an_interval_is_never_of_a_few_batches_only() -> None:
    assert [step for step, _ in run(small_network(evaluate=False, every=5), 17)] == [0, 5, 10, 17]
    assert [step for step, _ in run(small_network(evaluate=False, every=5), 18)] == [0, 5, 10, 15, 18]
    assert [step for step, _ in run(small_network(evaluate=False, every=5), 2)] == [0, 2]
    assert [step for step, _ in run(small_network(every=5), 17)] == [0, 5, 10, 15, 17]


def test_training_leaves_the_global_random_state_alone() -> None:
    before = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    training = small_network()
    made = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    run(training, 10)
    training.reseed(3)
    after = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    assert bool((made[0] == after[0]).all())
    assert made[1:] == after[1:]
    assert before[1:] == after[1:]


@pytest.mark.parametrize("loader", [True, False])
def test_an_evaluation_may_seed_and_draw_random_numbers(loader: bool) -> None:
    plain, seeding = small_network(loader=loader), small_network(loader=loader)
    evaluate, drawn = seeding.evaluate, []

    def evaluate_on_drawn_batches(model: nn.Module) -> float:
        torch.manual_seed(1)
        drawn.append(float(torch.rand(())) + random.random() + float(np.random.rand()))  # noqa: NPY002
        return float(evaluate(model))

    seeding.evaluate = evaluate_on_drawn_batches
    for training in (plain, seeding):
        training.reseed(0)
    assert run(seeding, 20) == run(plain, 20)
    assert drawn[0::2] == drawn[1::2]  # raw and averaged weights meet the same numbers


def test_groups_keep_their_ratio_and_follow_the_schedule() -> None:
    training = small_network()
    run(training, 10)
    rates = [group["lr"] for group in training.optimizer.param_groups]
    assert rates == pytest.approx([SCHEDULE(9), 0.1 * SCHEDULE(9)])


def test_the_average_reaches_back_over_a_share_of_the_steps() -> None:
    training = small_network("sgd")
    weights, average = [], None
    for t in range(12):
        run(training, t + 1)
        newest = training.model[0].weight.detach().clone()
        weights.append(newest)
        average = newest if average is None else average + (newest - average) / (1 + 0.15 * t)
    torch.testing.assert_close(training.average.module[0].weight, average)
    assert "average" in training.state_dict()


def test_without_evaluate_it_reports_the_training_loss_and_that_of_the_average() -> None:
    observed = run(small_network(evaluate=False), 13)
    assert [step for step, _ in observed] == [0, 5, 10, 13]
    assert all(set(value) == {"raw", "averaged"} for _, value in observed)
    assert [set(value) for _, value in run(small_network(evaluate=False, average=None), 5)] == [{"raw"}, {"raw"}]


def test_without_evaluate_the_first_value_is_the_loss_before_the_first_update() -> None:
    training, untrained = small_network(evaluate=False), small_network(evaluate=False)
    untrained.load_state_dict(training.state_dict())
    observed = run(training, 13) + run(training, 20)
    with untrained.randomness.activate(), torch.no_grad():
        expected = float(untrained.loss(untrained.model, untrained.batches.next()))
    assert observed[0] == (0, {"raw": expected, "averaged": expected})
    assert [step for step, _ in observed] == [0, 5, 10, 13, 15, 20]


def test_a_step_of_ones_own() -> None:
    def step(model, optimizer, batch):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return loss

    clipped = run(small_network(step=step), 20)
    assert clipped[-1][1]["raw"] < clipped[0][1]["raw"]


def test_clones_see_other_batches_but_the_same_seed_gives_the_same() -> None:
    def clone(seed: int) -> list:
        training = small_network()
        training.reseed(0)
        run(training, 10)
        training.reseed(seed)
        return run(training, 20)

    assert clone(1) == clone(1)
    assert clone(1) != clone(2)


def test_buffers_that_are_not_finite_are_copied_and_never_averaged() -> None:
    training = small_network()
    training.model.register_buffer("mask", torch.tensor([0.0, -torch.inf]))
    training.average = type(training.average)(training.model)
    observed = run(training, 10)
    assert all(np.isfinite(list(value.values())).all() for _, value in observed)
    assert training.average.module.mask.tolist() == [0.0, -torch.inf]


def test_every_must_be_a_step_at_least() -> None:
    with pytest.raises(InputError, match="every must be 1 or more, got -5"):
        small_network(every=-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.ones(3), r"evaluate\(model\) must return one number, got one of shape \(3,\): take its mean"),
        (None, r"must return one number, got None: does the function lack a `return`\?$"),
        ((0.1, 0.2), "must return one number, got a tuple"),
    ],
)
def test_an_evaluation_that_is_not_one_number_is_named(given, message: str) -> None:
    training = small_network()
    training.evaluate = lambda net: given
    with pytest.raises(InputError, match=message):
        run(training, 5)


@pytest.mark.parametrize(
    ("changed", "message"), [(lambda x: x.repeat(2), r"one of shape \(2,\)"), (lambda x: x.item(), "a float")]
)
def test_a_loss_that_is_not_one_number_with_a_gradient_is_named(changed, message: str) -> None:
    training = small_network()
    plain = training.loss
    training.loss = lambda net, batch: changed(plain(net, batch))
    with pytest.raises(InputError, match=rf"loss\(model, batch\) must return a tensor of one number, got {message}"):
        run(training, 5)


def test_a_loss_or_a_step_without_a_return_is_named() -> None:
    training = small_network(step=lambda net, optimizer, batch: None)
    with pytest.raises(
        InputError, match=r"step\(model, optimizer, batch\) must return .*, got None: does the function"
    ):
        run(training, 5)
    training.step, training.loss = None, lambda net, batch: None
    with pytest.raises(InputError, match=r"loss\(model, batch\) must return .*, got None: does the function lack a"):
        run(training, 5)


def test_a_loss_is_needed_only_without_a_step_or_an_evaluation() -> None:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> float:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    def evaluate(model: nn.Module) -> torch.Tensor:
        return model(torch.ones(1, 1)).square().mean()

    for given in ({"step": step}, {"evaluate": evaluate}, {}):
        with pytest.raises(
            InputError, match=r"loss= is missing: pass loss\(model, batch\), or both step= and evaluate="
        ):
            TorchTraining(model, optimizer, batches=[torch.ones(4, 1)], **given)
    training = TorchTraining(model, optimizer, batches=[torch.ones(4, 1)], step=step, evaluate=evaluate)
    observed = run(training, 10)
    assert observed[-1][1]["raw"] < observed[0][1]["raw"]


def measured(*, measure: bool = True, **settings: Any) -> TorchTraining:
    training = small_network(**settings)
    training.reseed(7)
    if measure:
        training.measure()
    return training


@pytest.mark.parametrize("evaluate", [True, False])
def test_measuring_changes_nothing_about_the_run(evaluate: bool) -> None:
    settings: dict[str, Any] = {"evaluate": evaluate, "every": 5}
    assert run(measured(**settings), 17) == run(measured(measure=False, **settings), 17)


def test_the_first_value_and_what_was_measured_belong_to_the_state() -> None:
    training = measured(every=None)
    assert training.observations.cost > 0
    calls = list[nn.Module]()
    fork = small_network(every=None)
    evaluate = fork.evaluate
    assert evaluate is not None
    fork.evaluate = lambda model: calls.append(model) or evaluate(model)
    fork.load_state_dict(deepcopy(training.state_dict()))
    assert fork.observations == training.observations
    observed = fork.advance(SCHEDULE, 17)
    assert next(observed)[0] == 0
    assert not calls
    assert len(list(observed)) * 2 == len(calls)
    assert "untrained" not in fork.state_dict()


def test_the_time_of_a_study_is_expected_from_what_was_measured() -> None:
    training = small_network(every=5)
    assert training.expected_seconds([(3, 0, 10), (1, 10, 40)], 40) is None
    training.measure()
    assert training.step_times is not None
    step, evaluation = training.step_times
    assert training.expected_seconds([(3, 0, 10), (1, 10, 40)], 40) == (60 * step, 12 * evaluation, 12)


def test_a_training_that_fails_while_it_is_measured_fails_as_a_fork() -> None:
    training = small_network(every=None)
    before = deepcopy(training.state_dict())
    training.step = lambda *_: 1 / 0
    training.measure()
    assert training.step_times is None
    after = {**training.state_dict(), "generators": before["generators"]}  # `evaluate` may draw random numbers
    assert after.pop("untrained") == training.untrained
    assert same_states(before, after)
    with pytest.raises(ZeroDivisionError):
        run(training, 5)


def test_it_says_what_its_time_goes_into() -> None:
    training = small_network(every=5)
    run(training, 17)
    assert training.seconds["evaluation"] > 0
    assert training.seconds["loading"] > 0
