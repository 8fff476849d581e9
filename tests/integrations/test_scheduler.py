"""PaceLR with real torch optimisers: as a drop-in scheduler, cut off and continued, and when things go wrong."""

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler

import paceline
from paceline import InputError, PaceLR, Schedule
from paceline.errors import TrainingError
from paceline.integrations import lambda_lr
from paceline.strategy.single_run.rules import range_test_steps

STEPS = 200
RANGE_TEST = range_test_steps(STEPS)


class Loop:
    """A small network with normalisation and dropout, noisy data, and the loop a user writes."""

    def __init__(self, make: Callable[[Any], Optimizer], *, steps: int = STEPS, closure: bool = False) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
        self.optimizer = make(self.model.parameters())
        self.pace = PaceLR(self.optimizer, lr=(1e-5, 1.0), steps=steps, model=self.model)
        self.closure, self.losses, self.rates = closure, list[float](), list[float]()

    def loss(self, batch: Tensor) -> Tensor:
        return nn.functional.mse_loss(self.model(batch).squeeze(1), batch.sin().sum(dim=1))

    def advance(self, start: int, stop: int) -> "Loop":
        for step in range(start, stop):
            batch = torch.randn(32, 5, generator=torch.Generator().manual_seed(step))
            torch.manual_seed(step)
            self.rates.append(self.optimizer.param_groups[0]["lr"])
            self.optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            self.optimizer.step()
            self.pace.step((lambda: self.loss(batch)) if self.closure else loss)
            self.losses.append(float(loss.detach()))
        return self

    def weights(self) -> Tensor:
        return torch.cat([p.detach().flatten() for p in [*self.model.parameters(), *self.model.buffers()]])


def adam(parameters: Any) -> Optimizer:
    return Adam(parameters)


def momentum(parameters: Any) -> Optimizer:
    return SGD(parameters, lr=0.1, momentum=0.9)


@pytest.mark.parametrize("make", [adam, momentum, lambda p: AdamW(p, amsgrad=True)])
@pytest.mark.parametrize("closure", [False, True])
def test_training_gets_better_and_the_rate_ends_near_zero(make: Callable[[Any], Optimizer], closure: bool) -> None:
    loop = Loop(make, closure=closure).advance(0, STEPS)
    assert sum(loop.losses[-20:]) < 0.5 * sum(loop.losses[:5]) * 4
    assert max(loop.rates[:RANGE_TEST]) == pytest.approx(1.0)
    assert loop.rates[-1] < 0.05 * max(loop.rates[RANGE_TEST:])


def test_it_is_a_scheduler_and_leaves_the_optimiser_alone() -> None:
    loop = Loop(adam)
    assert isinstance(loop.pace, LRScheduler)
    assert paceline.PaceLR is PaceLR
    assert "step" not in vars(loop.optimizer)
    assert loop.pace.get_last_lr() == [pytest.approx(1e-5)]
    loop.advance(0, 3)
    assert loop.pace.get_last_lr() == [loop.optimizer.param_groups[0]["lr"]]


def test_after_the_range_test_everything_is_as_it_was() -> None:
    loop = Loop(adam)
    before = loop.weights()
    loop.advance(0, RANGE_TEST)
    assert loop.pace.controller.run_start == RANGE_TEST
    torch.testing.assert_close(loop.weights(), before, rtol=0, atol=0)
    assert not loop.optimizer.state


@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("cut", [4, 30, RANGE_TEST, 90, 150])
def test_a_run_continued_from_states_is_bit_equal(closure: bool, cut: int, tmp_path: Any) -> None:
    whole = Loop(adam, closure=closure).advance(0, STEPS)
    loop = Loop(adam, closure=closure).advance(0, cut)
    states = {
        "model": loop.model.state_dict(),
        "optimizer": loop.optimizer.state_dict(),
        "pace": loop.pace.state_dict(),
    }
    torch.save(states, tmp_path / "state.pt")
    later = Loop(adam, closure=closure)
    states = torch.load(tmp_path / "state.pt", weights_only=True)
    later.model.load_state_dict(states["model"])
    later.optimizer.load_state_dict(states["optimizer"])
    later.pace.load_state_dict(states["pace"])
    later.advance(cut, STEPS)
    assert loop.rates + later.rates == whole.rates
    assert torch.equal(later.weights(), whole.weights())


def test_a_run_continued_from_a_pickle_is_bit_equal() -> None:
    whole = Loop(momentum, closure=True).advance(0, STEPS)
    loop = pickle.loads(pickle.dumps(Loop(momentum, closure=True).advance(0, 70)))
    loop.advance(70, STEPS)
    assert loop.rates == whole.rates
    assert torch.equal(loop.weights(), whole.weights())


def test_a_state_does_not_change_with_what_happens_later() -> None:
    loop = Loop(adam).advance(0, 40)
    state = loop.pace.state_dict()
    kept = pickle.dumps(state)
    loop.advance(40, STEPS)
    assert pickle.dumps(state) == kept


def test_a_closure_leaves_weights_statistics_and_random_numbers_alone() -> None:
    loop = Loop(adam, closure=True).advance(0, 40)
    batch = torch.randn(32, 5)
    weights, random = loop.weights(), torch.get_rng_state()
    first = loop.pace._loss_at(loop.pace._average, lambda: loop.loss(batch))
    again = loop.pace._loss_at(loop.pace._average, lambda: loop.loss(batch))
    assert first == again
    assert torch.equal(loop.weights(), weights)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_closure_that_raises_leaves_the_weights_alone() -> None:
    loop = Loop(adam, closure=True).advance(0, 40)
    weights = loop.weights()
    with pytest.raises(ZeroDivisionError):
        loop.pace.step(lambda: 1 / 0)
    assert torch.equal(loop.weights(), weights)


def test_averages_of_short_floats_are_kept_in_long_ones() -> None:
    weight = nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    optimizer = SGD([weight], lr=1.0)
    pace = PaceLR(optimizer, lr=(1e-3, 0.5), steps=100)
    for _ in range(40):
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        optimizer.step()
        pace.step(lambda: weight.square().sum())
    assert pace._average[0].dtype == torch.float32
    assert weight.dtype == torch.bfloat16


def test_the_estimate_by_gradients_is_exact_to_half_the_gradient_at_the_average() -> None:
    weight, curvature = nn.Parameter(torch.tensor([1.0, 2.0])), torch.tensor([1.0, 3.0])
    optimizer = SGD([weight], lr=1.0)
    pace = PaceLR(optimizer, lr=(1e-3, 0.1), steps=100)
    (0.5 * curvature * weight**2).sum().backward()
    pace._previous, pace._average = [weight.detach().clone()], [torch.zeros(2)]
    assert pace._estimate_average_loss(6.5) == pytest.approx(0.0)


def test_gradients_read_before_they_are_zeroed_are_as_good_as_those_left_behind() -> None:
    left, read = Loop(adam), Loop(adam)
    for step in range(STEPS):
        for loop in (left, read):
            torch.manual_seed(step)
            loop.optimizer.zero_grad()
            loss = loop.loss(torch.randn(32, 5, generator=torch.Generator().manual_seed(step)))
            loss.backward()
            loop.optimizer.step()
            if loop is read:
                loop.pace.read_gradients()
                loop.optimizer.zero_grad()
            loop.pace.step(loss)
    assert read.pace.controller == left.pace.controller
    assert torch.equal(read.weights(), left.weights())


def test_groups_keep_their_ratio_to_the_first() -> None:
    a, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    optimizer = SGD([{"params": [a], "lr": 0.1}, {"params": [b], "lr": 0.01}])
    pace = PaceLR(optimizer, lr=(1e-3, 0.5), steps=100)
    for _ in range(100):
        first, second = (group["lr"] for group in optimizer.param_groups)
        assert second == pytest.approx(first / 10)
        optimizer.zero_grad()
        loss = (a**2).sum() + (b**2).sum()
        loss.backward()
        optimizer.step()
        pace.step(loss)
    assert len(pace.get_last_lr()) == 2


def plain(losses: Callable[[int], float], steps: int = 100) -> tuple[PaceLR, nn.Parameter]:
    """A loop with given losses; each update moves the weight by the rate."""
    weight = nn.Parameter(torch.zeros(1))
    optimizer = SGD([weight], lr=1.0)
    pace = PaceLR(optimizer, lr=(1e-3, 1.0), steps=steps)
    for step in range(steps):
        weight.grad = torch.ones(1)
        optimizer.step()
        pace.step(losses(step))
    return pace, weight


def test_a_divergence_goes_back_to_the_last_correction_lower() -> None:
    with pytest.warns(UserWarning, match=r"diverged at step 50: the weights go back"):
        pace, weight = plain(lambda step: float("nan") if step == 49 else 2.0 - 0.001 * step)
    calm, undisturbed = plain(lambda step: 2.0 - 0.001 * step)
    assert pace.controller.peak == pytest.approx(pace.controller.max_peak)
    assert pace.controller.peak < calm.controller.peak + 1e-9
    assert abs(float(weight.detach())) < abs(float(undisturbed.detach()))


def test_losses_without_information_do_no_harm() -> None:
    pace, _ = plain(lambda step: 1.0)
    assert 0 < pace.get_last_lr()[0] < 1e-2


@pytest.mark.parametrize("bad", [float("nan"), 1e9])  # what is finite shows only after some steps
def test_a_run_that_diverges_at_the_lowest_rate_too_ends_with_advice(bad: float) -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = SGD([weight], lr=1.0)
    pace = PaceLR(optimizer, lr=(1e-3, 1.0), steps=100)
    peaks = list[float]()

    def loop() -> None:
        for step in range(100):
            weight.grad = torch.ones(1)
            optimizer.step()
            pace.step(bad if step > 20 else 1.0)
            peaks.append(10**pace.controller.peak)

    with (
        pytest.warns(UserWarning, match="diverged") as caught,
        pytest.raises(TrainingError, match=r"5th time at .* 0.001\."),
    ):
        loop()
    assert 0 < len(caught) < 10
    assert min(peaks) == pytest.approx(1e-3)
    assert torch.isfinite(weight).all()
    assert 0 < pace.get_last_lr()[0] <= 1e-3


def test_gradients_that_are_gone_leave_the_peak_as_it_is() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = SGD([weight], lr=1.0)
    pace = PaceLR(optimizer, lr=(1e-3, 0.9), steps=100)
    peaks = set()
    for _ in range(100):
        loss = (weight**2).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        pace.step(loss)
        peaks.add(pace.controller.peak)
    assert len(peaks) == 2  # before the range test was read, and after


def test_wrong_use_says_what_to_do() -> None:
    weight = nn.Parameter(torch.ones(1))
    pace = PaceLR(SGD([weight], lr=1.0), lr=(1e-3, 1.0), steps=20)
    with pytest.raises(InputError, match=r"needs the loss of the update just made"):
        pace.step()
    with pytest.raises(InputError, match=r"swap them"):
        PaceLR(SGD([weight], lr=1.0), lr=(1.0, 1e-3), steps=20)
    with pytest.raises(InputError, match=r"first rate must be positive"):
        PaceLR(SGD([weight], lr=0.0), lr=(1e-3, 1.0), steps=20)


@pytest.mark.parametrize("count", [0, 3])
def test_the_number_of_an_epoch_is_no_loss(count: int) -> None:
    weight = nn.Parameter(torch.ones(1))
    pace = PaceLR(SGD([weight], lr=1.0), lr=(1e-3, 1.0), steps=20)
    with pytest.raises(InputError, match=r"got .*, a whole number like that of an epoch .* call pace.step\(loss\)"):
        pace.step(count)
    pace.step(torch.tensor(3))


def test_states_that_do_not_belong_to_the_run_are_refused() -> None:
    loop = Loop(adam).advance(0, 30)
    state = loop.pace.state_dict()
    with pytest.raises(InputError, match=r"expected a state of PaceLR, .* got base_lrs, last_epoch"):
        loop.pace.load_state_dict({"base_lrs": [0.1], "last_epoch": 3})
    old = {**state, "controller": {**state["controller"], "ended": None}}
    with pytest.raises(InputError, match=r"saved by another version of Paceline"):
        loop.pace.load_state_dict(old)
    with pytest.raises(InputError, match=r"steps=200 and lr=\(1e-05, 1\), and .* steps=300 and lr=\(1e-05, 1\)"):
        Loop(adam, steps=300).pace.load_state_dict(state)
    weight = nn.Parameter(torch.ones(1))
    with pytest.raises(InputError, match=r"another model or optimiser, with 6 parameters in 1 groups: got 1 in 1"):
        PaceLR(SGD([weight], lr=1.0), lr=(1e-5, 1.0), steps=STEPS).load_state_dict(state)


def test_scales_of_layers_are_applied_to_the_rate() -> None:
    """As timm's schedulers do: the rate that is found is that of a group with a scale of 1."""
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    groups = [{"params": [a], "lr_scale": 0.25}, {"params": [b], "lr_scale": 1.0}]
    optimizer = SGD(groups, lr=0.1)
    pace = PaceLR(optimizer, lr=(1e-3, 0.5), steps=100)
    assert pace.get_last_lr() == pytest.approx([0.25e-3, 1e-3])
    assert PaceLR(optimizer, lr=(1e-3, 0.5), steps=100).get_last_lr() == pytest.approx([0.25e-3, 1e-3])
    scheduler = lambda_lr(SGD(groups, lr=0.1), Schedule.constant(0.2, steps=10))
    assert scheduler.get_last_lr() == pytest.approx([0.05, 0.2])


def test_more_steps_than_announced_warn_once_and_keep_the_last_rate() -> None:
    pace, _ = plain(lambda step: 2.0 - 0.01 * step)
    last = pace.get_last_lr()
    with pytest.warns(
        UserWarning, match=r"constructed for 100 steps, and they are over: .* how many updates the loop makes"
    ):
        pace.step(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pace.step(1.0)
    assert pace.get_last_lr() == last


def test_a_tensor_rate_is_filled_in_place() -> None:
    weight, rate = nn.Parameter(torch.ones(1)), torch.tensor(1e-3)
    optimizer = Adam([weight], lr=rate, capturable=False, foreach=False)
    pace = PaceLR(optimizer, lr=(1e-4, 1e-1), steps=20)
    pace.step(1.0)
    assert optimizer.param_groups[0]["lr"] is rate
    assert float(rate) == pytest.approx(pace.get_last_lr()[0])


def test_a_schedule_as_a_torch_scheduler() -> None:
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = SGD([{"params": [a], "lr": 0.3}, {"params": [b], "lr": 0.03}])
    schedule = Schedule([0.2, 0.1], [0, 3, 6], base="linear")
    scheduler, rates = lambda_lr(optimizer, schedule), []
    for _ in range(6):
        rates.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    assert [first for first, _ in rates] == pytest.approx([schedule(step) for step in range(6)])
    assert [second for _, second in rates] == pytest.approx([schedule(step) / 10 for step in range(6)])


@pytest.mark.parametrize("steps", [100, 300])
def test_the_range_test_of_a_short_noisy_run_finds_a_rate_that_trains(steps: int) -> None:
    ends = []
    for seed in range(10):
        torch.manual_seed(seed)
        model = nn.Linear(20, 1)
        optimizer = SGD(model.parameters())
        pace = PaceLR(optimizer, lr=(1e-5, 1e-1), steps=steps)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a rate that was too high for a while, and was lowered
            for _ in range(steps):
                optimizer.zero_grad()
                loss = (model(torch.randn(32, 20)) - 1.0).square().mean()
                loss.backward()
                optimizer.step()
                pace.step(loss)
        ends.append(loss.item())
    assert max(ends) < 0.1
