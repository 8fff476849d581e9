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
from paceline.problems.digits import digits_training
from paceline.runner import Streams
from paceline.study import Decided, Study
from paceline.training import DeviceBatches, TorchTraining
from tests.training.example_trainings import CountingOptimizer, device_digits
from tests.training.host_stream import DeviceOnlyReplay, HostWorkStream


def tuned(make_training, runner, study: Path, **settings):
    settings = {"steps": 200, "lr": (1e-3, 1e-1), "cost": 2.3, "seed": 3, **settings}
    return paceline.tune(make_training, runner=runner, study=study, **settings)


SIDE_BY_SIDE = partial(Streams, make_stream=HostWorkStream)


@pytest.mark.parametrize(
    ("kind", "evaluate"),
    [("adam", "tensor"), ("adamw", "number"), ("momentum", "none"), ("sgd", "none"), ("rmsprop", "tensor")],
)
def test_a_study_is_the_same_as_with_forks_in_turn(tmp_path: Path, kind: str, evaluate: str) -> None:
    factory = partial(device_digits, kind, evaluate=evaluate)
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
    whole = tuned(device_digits, runner, tmp_path / "whole")
    seen = 0

    def stop(event) -> None:
        nonlocal seen
        seen += isinstance(event, Observed)
        if seen == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(device_digits, runner, tmp_path / "cut", on_event=stop)
    other = "local" if forks == 20 else runner  # checkpoints are the same, whoever wrote them
    again = tuned(device_digits, other, tmp_path / "cut")
    assert again.schedule == whole.schedule
    assert again.value == pytest.approx(whole.value, rel=1e-3)


def test_checkpoints_are_bounded_and_progress_is_told(tmp_path: Path) -> None:
    steps: dict[int, list[int]] = {}
    counts: list[int] = []

    def on_event(event) -> None:
        if isinstance(event, Decided):
            counts.append(len(list((tmp_path / "s" / "checkpoints").glob("*"))))

    result = tuned(
        device_digits,
        SIDE_BY_SIDE,
        tmp_path / "s",
        on_step=lambda f, s: steps.setdefault(f, []).append(s),
        on_event=on_event,
    )
    assert max(counts) <= 9
    assert len(list((tmp_path / "s" / "checkpoints").glob("*"))) == 1
    assert steps[result.fork][-1] == 200
    assert all(np.all(np.diff(at) > 0) for at in steps.values())
    assert {"training", "evaluation", "checkpoint", "capture"} <= result.seconds.keys()


def test_a_fork_that_diverges_fails_and_the_others_go_on(tmp_path: Path) -> None:
    result = tuned(partial(device_digits, "sgd"), SIDE_BY_SIDE, tmp_path / "s", steps=60, lr=(1e-2, 1e30), cost=5)
    failures = {fork.failure for fork in result.history.forks if fork.failure}
    assert failures
    assert all("is not finite" in said for said in failures)
    assert result.value is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: digits_training(0), "from a Batches: put the data on the device"),
        (lambda t: setattr(t, "scaler", torch.amp.GradScaler("cpu")) or t, "a gradient scaler decides on the host"),
        (
            lambda t: setattr(t, "optimizer", CountingOptimizer(t.model.parameters())) or t,
            "counts or decides on the host",
        ),
    ],
)
def test_what_cannot_be_recorded_says_why_and_goes_on_in_turn(tmp_path: Path, change, reason: str) -> None:

    def factory():
        training = device_digits()
        changed = change(training)
        if isinstance(changed, TorchTraining):
            changed.rate_ratios = np.ones(len(changed.optimizer.param_groups))
        return changed

    with pytest.warns(UserWarning, match=f"streams: .*{reason}.*Going on as local"):
        result = tuned(factory, partial(Streams, make_stream=DeviceOnlyReplay), tmp_path / "s", steps=60)
    assert result.value is not None


def test_a_training_that_is_broken_says_what_it_says_in_turn(tmp_path: Path) -> None:
    def factory() -> TorchTraining:
        training = device_digits()
        training.loss = lambda model, batch: 1 / 0
        return training

    with pytest.warns(UserWarning, match=r"the step cannot be recorded \(ZeroDivisionError"):  # noqa: SIM117
        with pytest.raises(TrainingError, match="division by zero"):
            tuned(factory, SIDE_BY_SIDE, tmp_path / "s")
    with pytest.raises(TrainingError, match="the training factory must return a Training"):
        tuned(object, SIDE_BY_SIDE, tmp_path / "t")


def test_without_a_gpu_the_runner_says_so(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the model is on the cpu, which is no GPU"):
        assert tuned(device_digits, "streams", tmp_path / "s", steps=60).value is not None


def test_what_does_not_fit_waits_for_its_turn_or_stops(tmp_path: Path) -> None:
    class Full(HostWorkStream):
        made = 0

        def __init__(self, device: torch.device) -> None:
            Full.made += 1
            if Full.made > 3:
                raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.warns(UserWarning, match="3 of 8 forks fit into the GPU's memory at a time, .*: the others wait"):
        few = tuned(device_digits, partial(Streams, make_stream=Full), tmp_path / "few", steps=60)
    assert few.schedule == tuned(device_digits, SIDE_BY_SIDE, tmp_path / "all", steps=60).schedule
    Full.made = 0
    with pytest.raises(TrainingError, match="and 5 were asked for: ask for 3, or leave forks out"):
        tuned(device_digits, partial(Streams, make_stream=Full, forks=5), tmp_path / "exact", steps=60)
    Full.made = 3
    with pytest.raises(TrainingError, match="not one fork fits"):
        tuned(device_digits, partial(Streams, make_stream=Full), tmp_path / "none", steps=60)


def test_forks_share_their_data() -> None:
    runner = Streams(device_digits, make_stream=HostWorkStream)
    runner._make_room(Counter({0: 3}))
    held = {slot.training.batches.source.tensors[0].data_ptr() for slot in runner._slots[0]}
    assert len(held) == 1


def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(InputError, match="forks must be 1 or more, got 0"):
        Streams(device_digits, forks=0)
    with pytest.raises(InputError, match="runner must be one of local, streams, ray, got 'gpu'"):
        paceline.tune(device_digits, steps=10, lr=(1e-3, 1e-1), runner="gpu")
    with pytest.raises(InputError, match="runner must make a Runner"):
        paceline.tune(device_digits, steps=10, lr=(1e-3, 1e-1), runner=lambda made: made)


def test_global_randomness_is_left_alone(tmp_path: Path) -> None:
    tuned(device_digits, SIDE_BY_SIDE, tmp_path / "warm", steps=60)
    runner = Streams(device_digits, make_stream=HostWorkStream)
    before = torch.get_rng_state()
    made = device_digits()  # a factory draws what it draws
    drawn = torch.get_rng_state()
    runner._factories = (lambda: made,)
    runner._make_room(Counter({0: 1}))
    runner.prepare(tmp_path / "0-0.pt")
    assert not torch.equal(before, drawn)
    assert torch.equal(torch.get_rng_state(), drawn)


def test_an_evaluation_that_raises_is_its_forks_failure(tmp_path: Path) -> None:
    def factory() -> TorchTraining:
        training = device_digits("sgd")
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
        training = device_digits()
        training.batches.source = DeviceBatches(rows, torch.zeros(len(rows), dtype=torch.long), size=32)
        return training

    runner = Streams(lambda: with_data(torch.randn(64, 1, 8, 8)), make_stream=HostWorkStream)
    runner._make_room(Counter({0: 3}))
    assert len({slot.batches.tensors[0].data_ptr() for slot in runner._slots[0]}) == 1
    rng = np.random.default_rng()
    other = Streams(lambda: with_data(torch.tensor(rng.normal(size=(64, 1, 8, 8))).float()), make_stream=HostWorkStream)
    with pytest.warns(UserWarning, match="makes other data each time it is called"):
        other._make_room(Counter({0: 2}))
