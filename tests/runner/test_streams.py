"""Forks side by side do what forks in turn do. Here on the host; on a GPU, see test_streams_on_a_gpu."""

import re
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import paceline
from paceline.errors import InputError, TrainingError
from paceline.problems.digits import digits_training, load_digits
from paceline.runner.streams import Streams
from paceline.study import Decided, Study
from paceline.training import DeviceBatches, TorchTraining
from paceline.training.recorded_training import RecordedTraining
from tests.runner.host_stream import HostWorkStream

OPTIMISERS = {
    "adam": partial(torch.optim.Adam, amsgrad=True),
    "adamw": torch.optim.AdamW,
    "momentum": partial(torch.optim.SGD, momentum=0.9, dampening=0.5),
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
}


def make(kind: str = "adam", *, evaluate: str = "tensor", device: str = "cpu", **settings) -> TorchTraining:
    images, labels, valid_images, valid_labels = (data.to(device) for data in load_digits())
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 24, bias=False), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))
    for i, p in enumerate(model.parameters()):
        nn.init.normal_(p, std=0.1, generator=torch.Generator().manual_seed(i))
    model.to(device)
    groups = [{"params": list(model[1].parameters())}, {"params": list(model[4].parameters()), "lr": 5e-4}]
    loss = nn.CrossEntropyLoss()
    held_out = valid_images.view(-1, 1, 8, 8)
    evaluations = {
        "tensor": lambda net: loss(net(held_out), valid_labels),
        "number": lambda net: float(loss(net(held_out), valid_labels)),
        "none": None,
    }
    training = TorchTraining(
        model,
        OPTIMISERS[kind](groups, lr=1e-3),
        batches=DeviceBatches(images.view(-1, 1, 8, 8), labels, size=64, crop=1, flip=False),
        loss=lambda net, batch: loss(net(batch[0]), batch[1]),
        evaluate=evaluations[evaluate],
        every=settings.pop("every", 10),
        **settings,
    )
    training.reseed(0)
    return training


def tuned(make_training, runner, study: Path, **settings):
    settings = {"steps": 200, "lr": (1e-3, 1e-1), "cost": 2.3, "seed": 3, **settings}
    return paceline.tune(make_training, runner=runner, study=study, **settings)


SIDE_BY_SIDE = partial(Streams, make_stream=HostWorkStream)


@pytest.mark.parametrize(
    ("kind", "evaluate"),
    [("adam", "tensor"), ("adamw", "number"), ("momentum", "none"), ("sgd", "none"), ("rmsprop", "tensor")],
)
def test_a_study_is_the_same_as_with_forks_in_turn(tmp_path: Path, kind: str, evaluate: str) -> None:
    factory = partial(make, kind, evaluate=evaluate)
    turn, side = tuned(factory, "local", tmp_path / "turn"), tuned(factory, SIDE_BY_SIDE, tmp_path / "side")
    first, second = (Study.open(tmp_path / name) for name in ("turn", "side"))
    assert first.intervals == second.intervals
    assert turn.schedule == side.schedule
    side_reports = {(r.fork, r.start): r for r in second.reports}
    for b in first.reports:
        a = side_reports[b.fork, b.start]
        assert (a.steps, a.values.keys()) == (b.steps, b.values.keys())
        for of in a.values:
            np.testing.assert_allclose(a.values[of], b.values[of], rtol=2e-3)
    for a, b in zip(turn.weights().values(), side.weights().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("forks", [None, 2, 20])
def test_a_study_stopped_anywhere_goes_on_and_with_any_runner(tmp_path: Path, forks: int | None) -> None:
    runner = partial(Streams, make_stream=HostWorkStream, forks=forks)
    whole = tuned(make, runner, tmp_path / "whole")
    seen = 0

    def stop(event) -> None:
        nonlocal seen
        seen += isinstance(event, Observed)
        if seen == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(make, runner, tmp_path / "cut", on_event=stop)
    other = "local" if forks == 20 else runner  # checkpoints are the same, whoever wrote them
    again = tuned(make, other, tmp_path / "cut")
    assert again.schedule == whole.schedule
    assert again.value == pytest.approx(whole.value, rel=1e-3)


def test_checkpoints_are_bounded_and_progress_is_told(tmp_path: Path) -> None:
    steps: dict[int, list[int]] = {}
    counts: list[int] = []

    def on_event(event) -> None:
        if isinstance(event, Decided):
            counts.append(len(list((tmp_path / "s" / "checkpoints").glob("*"))))

    result = tuned(
        make, SIDE_BY_SIDE, tmp_path / "s", on_step=lambda f, s: steps.setdefault(f, []).append(s), on_event=on_event
    )
    assert max(counts) <= 9
    assert len(list((tmp_path / "s" / "checkpoints").glob("*"))) == 1
    assert steps[result.fork][-1] == 200
    assert all(np.all(np.diff(at) > 0) for at in steps.values())
    assert {"training", "evaluation", "checkpoint", "capture"} <= result.seconds.keys()


def test_a_fork_that_diverges_fails_and_the_others_go_on(tmp_path: Path) -> None:
    result = tuned(partial(make, "sgd"), SIDE_BY_SIDE, tmp_path / "s", steps=60, lr=(1e-2, 1e30), cost=5)
    failures = {fork.failure for fork in result.history.forks if fork.failure}
    assert failures
    assert all("is not finite" in said for said in failures)
    assert result.value is not None


class Counting(torch.optim.Optimizer):
    """An optimiser that counts on the host, as a recording cannot."""

    def __init__(self, params, lr=1e-3) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["count"] = self.state[p].get("count", 0) + 1
                p -= group["lr"] * self.state[p]["count"] * p.grad


class FrozenWorkStream(HostWorkStream):
    """As a graph does, it repeats what the device did, not what the host counts."""

    def record(self, work):
        def replay() -> None:
            counts = Counting.step
            Counting.step = lambda self, closure=None: None
            try:
                work()
            finally:
                Counting.step = counts

        return replay


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: digits_training(0), "from a Batches: put the data on the device"),
        (lambda t: setattr(t, "scaler", torch.amp.GradScaler("cpu")) or t, "a gradient scaler decides on the host"),
        (lambda t: setattr(t, "optimizer", Counting(t.model.parameters())) or t, "counts or decides on the host"),
    ],
)
def test_what_cannot_be_recorded_says_why_and_goes_on_in_turn(tmp_path: Path, change, reason: str) -> None:

    def factory():
        training = make()
        changed = change(training)
        if isinstance(changed, TorchTraining):
            changed.rate_ratios = np.ones(len(changed.optimizer.param_groups))
        return changed

    with pytest.warns(UserWarning, match=f"streams: .*{reason}.*Going on as local"):
        assert (
            tuned(factory, partial(Streams, make_stream=FrozenWorkStream), tmp_path / "s", steps=60).value is not None
        )


class OpenOrder(HostWorkStream):
    """Replays that end a millionth of a weight beside the step, as where sums are added up in another order."""

    def record(self, work):
        def replay() -> None:
            work()
            with torch.no_grad():
                OpenOrder.weight += 1e-6

        return replay


def test_what_rounding_leaves_open_may_grow_from_step_to_step() -> None:
    """Gradients that turn around within a few millionths: three steps in a row would end anywhere."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 0.5)  # where a step moves it by much more than a millionth
    OpenOrder.weight = model.weight
    training = TorchTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-2),
        batches=DeviceBatches(torch.zeros(8, 1), size=4),
        loss=lambda net, batch: -torch.cos(1e6 * net.weight).sum() / 1e6,
    )
    RecordedTraining(training, OpenOrder(torch.device("cpu")))


def test_a_training_that_is_broken_says_what_it_says_in_turn(tmp_path: Path) -> None:
    def factory() -> TorchTraining:
        training = make()
        training.loss = lambda model, batch: 1 / 0
        return training

    with pytest.warns(UserWarning, match=r"the step cannot be recorded \(ZeroDivisionError"):  # noqa: SIM117
        with pytest.raises(TrainingError, match="division by zero"):
            tuned(factory, SIDE_BY_SIDE, tmp_path / "s")
    with pytest.raises(TrainingError, match="the training factory must return a Training"):
        tuned(object, SIDE_BY_SIDE, tmp_path / "t")


def test_without_a_gpu_the_runner_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the model is on the cpu, which is no GPU"):
        assert tuned(make, "streams", tmp_path / "s", steps=60).value is not None


def test_what_does_not_fit_waits_for_its_turn_or_stops(tmp_path: Path) -> None:
    class Full(HostWorkStream):
        made = 0

        def __init__(self, device: torch.device) -> None:
            Full.made += 1
            if Full.made > 3:
                raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.warns(UserWarning, match="3 of 8 forks fit into the GPU's memory at a time, .*: the others wait"):
        few = tuned(make, partial(Streams, make_stream=Full), tmp_path / "few", steps=60)
    assert few.schedule == tuned(make, SIDE_BY_SIDE, tmp_path / "all", steps=60).schedule
    Full.made = 0
    with pytest.raises(TrainingError, match="and 5 were asked for: ask for 3, or leave forks out"):
        tuned(make, partial(Streams, make_stream=Full, forks=5), tmp_path / "exact", steps=60)
    Full.made = 3
    with pytest.raises(TrainingError, match="not one fork fits"):
        tuned(make, partial(Streams, make_stream=Full), tmp_path / "none", steps=60)


def test_forks_share_their_data() -> None:
    runner = Streams(make, make_stream=HostWorkStream)
    runner._make_room(Counter({0: 3}))
    held = {slot.training.batches.source.tensors[0].data_ptr() for slot in runner._slots[0]}
    assert len(held) == 1


def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(InputError, match="forks must be 1 or more, got 0"):
        Streams(make, forks=0)
    with pytest.raises(InputError, match="runner must be one of local, streams, ray, got 'gpu'"):
        paceline.tune(make, steps=10, lr=(1e-3, 1e-1), runner="gpu")
    with pytest.raises(InputError, match="runner must make a Runner"):
        paceline.tune(make, steps=10, lr=(1e-3, 1e-1), runner=lambda made: made)


def test_a_training_that_does_not_begin_from_nothing_keeps_its_optimiser(tmp_path: Path) -> None:
    def later() -> TorchTraining:
        training = make()
        list(training.advance(paceline.Schedule.constant(1e-3, steps=30), 30))
        begun = make()
        begun.model.load_state_dict(training.model.state_dict())
        begun.optimizer.load_state_dict(training.optimizer.state_dict())
        return begun

    turn, side = tuned(later, "local", tmp_path / "turn"), tuned(later, SIDE_BY_SIDE, tmp_path / "side")
    assert turn.schedule == side.schedule
    assert turn.value == pytest.approx(side.value, rel=1e-3)


def test_global_randomness_is_left_alone(tmp_path: Path) -> None:
    tuned(make, SIDE_BY_SIDE, tmp_path / "warm", steps=60)
    runner = Streams(make, make_stream=HostWorkStream)
    before = torch.get_rng_state()
    made = make()  # a factory draws what it draws
    drawn = torch.get_rng_state()
    runner._factories = (lambda: made,)
    runner._make_room(Counter({0: 1}))
    runner.prepare(tmp_path / "0-0.pt")
    assert not torch.equal(before, drawn)
    assert torch.equal(torch.get_rng_state(), drawn)


class Rebinding(nn.Module):
    """Statistics that are new tensors after each batch: a recording would go on reading the old ones."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(24))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x - self.mean
        self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x


class Subclass(TorchTraining):
    def load_state_dict(self, state) -> None:
        super().load_state_dict(state)


def rebinds(training: TorchTraining) -> TorchTraining:
    training.model[3] = Rebinding()
    training.average.module[3] = Rebinding()
    training.average._is_averaged.append(True)
    return training


def is_a_subclass(training: TorchTraining) -> TorchTraining:
    training.__class__ = Subclass
    return training


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (rebinds, "replaces its tensors by new ones"),
        (is_a_subclass, "Subclass has its own advance or load_state_dict"),
    ],
)
def test_what_a_recording_would_not_notice_is_refused(tmp_path: Path, change, reason: str) -> None:
    with pytest.warns(UserWarning, match=reason):
        assert tuned(lambda: change(make()), SIDE_BY_SIDE, tmp_path / "s", steps=60).value is not None


def test_odd_models_and_optimisers_run(tmp_path: Path) -> None:
    def odd() -> TorchTraining:
        training = make()
        training.optimizer.add_param_group({"params": [], "lr": 1e-3})
        training.rate_ratios = np.ones(3)
        training.model[0].register_buffer("mask", torch.tensor([0.0, -torch.inf]))
        training.model[4].bias.requires_grad_(False)
        training.average = type(training.average)(training.model)
        return training

    assert np.isfinite(tuned(odd, SIDE_BY_SIDE, tmp_path / "s", steps=60).value)


def test_an_evaluation_that_raises_is_its_forks_failure(tmp_path: Path) -> None:
    def factory() -> TorchTraining:
        training = make("sgd")
        evaluate = training.evaluate

        def strict(net: nn.Module) -> float:
            value = float(evaluate(net))
            if not np.isfinite(value):
                raise ValueError("Input contains NaN")
            return value

        training.evaluate = strict
        return training

    result = tuned(factory, SIDE_BY_SIDE, tmp_path / "s", steps=60, lr=(1e-2, 1e30), cost=5)
    (said,) = {fork.failure for fork in result.history.forks if fork.failure}
    assert re.fullmatch(r"ValueError: Input contains NaN \(test_streams.py, line \d+\)", said)


def test_factories_that_draw_see_the_same_numbers_and_others_are_told(tmp_path: Path) -> None:
    def with_data(rows: torch.Tensor) -> TorchTraining:
        training = make()
        training.batches.source = DeviceBatches(rows, torch.zeros(len(rows), dtype=torch.long), size=32)
        return training

    runner = Streams(lambda: with_data(torch.randn(64, 1, 8, 8)), make_stream=HostWorkStream)
    runner._make_room(Counter({0: 3}))
    assert len({slot.batches.tensors[0].data_ptr() for slot in runner._slots[0]}) == 1
    rng = np.random.default_rng()
    other = Streams(lambda: with_data(torch.tensor(rng.normal(size=(64, 1, 8, 8))).float()), make_stream=HostWorkStream)
    with pytest.warns(UserWarning, match="makes other data each time it is called"):
        other._make_room(Counter({0: 2}))


def test_an_optimiser_state_that_comes_late_says_what_to_do() -> None:
    runner = Streams(make, make_stream=HostWorkStream)
    runner._make_room(Counter({0: 1}))
    state = make().state_dict()
    state["optimizer"]["state"] = {99: {}}
    slot = runner._slots[0][0]
    slot._optimizer.optimizer.param_groups[0]["params"] += [nn.Parameter(torch.zeros(3))] * 99
    with pytest.raises(TrainingError, match=r"shape \(3,\) that got no gradient when the step was recorded"):
        slot.load_state_dict(state)
