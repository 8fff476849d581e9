"""Forks side by side do what forks in turn do. Here on the host; on a GPU, see test_on_a_gpu."""

import logging
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import paceline
from paceline.errors import InputError, TrainingError
from paceline.runner import Local, Runner, Streams
from paceline.study import Checkpoints, Decided, Interval, Report, Study
from paceline.traces import Schedule
from paceline.training import TorchTraining, load_checkpoint
from tests.training.example_trainings import CountingOptimizer, device_digits, small_network
from tests.training.host_stream import DeviceOnlyReplay, HostWorkStream

SIDE_BY_SIDE = partial(Streams, make_stream=HostWorkStream)


def tuned(make_training, runner, study: Path, **settings):
    settings = {"steps": 100, "lr": (1e-3, 1e-1), "cost": 2.3, "seed": 3, **settings}
    return paceline.tune(make_training, runner=runner, study=study, **settings)


def attached(runner: Runner, folder: Path) -> Runner:
    runner.attach(Checkpoints(folder), 0)
    runner.prepare()
    return runner


def rates(*values: float, steps: int = 60) -> list[Interval]:
    """The first interval of a fork at each of these rates."""
    return [Interval(i, None, 0, 20, Schedule.constant(rate, steps), 1) for i, rate in enumerate(values)]


def place(interval: Interval) -> tuple:
    """What is decided by comparisons. Rates of forks that go on are corrected by values, so they differ as these do."""
    return interval.fork, interval.parent, interval.start, interval.stop, interval.round


@pytest.mark.parametrize(
    ("kind", "evaluate"),
    [("adam", "tensor"), ("adamw", "number"), ("momentum", "none"), ("sgd", "none"), ("rmsprop", "tensor")],
)
def test_a_study_is_the_same_as_with_forks_in_turn(tmp_path: Path, kind: str, evaluate: str) -> None:
    factory = partial(device_digits, kind, evaluate=evaluate, every=5)
    local, streams = tuned(factory, "local", tmp_path / "local"), tuned(factory, SIDE_BY_SIDE, tmp_path / "streams")
    first, second = (Study.open(tmp_path / name) for name in ("local", "streams"))
    assert list(map(place, first.intervals)) == list(map(place, second.intervals))
    for interval, other in zip(first.intervals, second.intervals, strict=True):
        np.testing.assert_allclose(interval.schedule.multipliers, other.schedule.multipliers, rtol=2e-3)
    assert (local.fork, local.step) == (streams.fork, streams.step)
    reports = {(report.fork, report.start): report for report in second.reports}
    for report in first.reports:
        other = reports[report.fork, report.start]
        assert (report.steps, report.values.keys()) == (other.steps, other.values.keys())
        for weights, column in report.values.items():
            np.testing.assert_allclose(column, other.values[weights], rtol=2e-3)
    for a, b in zip(local.weights().values(), streams.weights().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    """An undisturbed study."""
    return tuned(device_digits, SIDE_BY_SIDE, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("forks", [None, 2, 20])
def test_a_study_that_was_stopped_continues_with_any_runner(whole, tmp_path: Path, forks: int | None) -> None:
    runner, reported = partial(SIDE_BY_SIDE, forks=forks), 0

    def stop(event) -> None:
        nonlocal reported
        reported += isinstance(event, Report)
        if reported == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(device_digits, runner, tmp_path, on_event=stop)
    other = "local" if forks == 20 else runner  # checkpoints are the same, whichever runner wrote them
    again = tuned(device_digits, other, tmp_path)
    assert (again.fork, again.step) == (whole.fork, whole.step)
    np.testing.assert_allclose(
        again.schedule.multipliers, whole.schedule.multipliers, rtol=2e-3 if other == "local" else 0
    )
    assert again.value == pytest.approx(whole.value, rel=1e-3)


def test_few_checkpoints_are_kept_and_every_observation_is_passed_on(tmp_path: Path) -> None:
    steps: dict[int, list[int]] = {}
    counts: list[int] = []

    def on_event(event) -> None:
        if isinstance(event, Decided):
            counts.append(len(list((tmp_path / "checkpoints").glob("*"))))

    result = tuned(
        device_digits,
        SIDE_BY_SIDE,
        tmp_path,
        on_step=lambda fork, step: steps.setdefault(fork, []).append(step),
        on_event=on_event,
    )
    assert max(counts) <= 9
    assert len(list((tmp_path / "checkpoints").glob("*"))) == 1
    assert steps[result.fork][-1] == 100
    assert all(np.all(np.diff(at) > 0) for at in steps.values())
    assert {"training", "evaluation", "checkpoint", "capture"} <= result.seconds.keys()


def test_a_fork_that_diverges_fails_and_the_others_go_on(tmp_path: Path) -> None:
    runner = attached(SIDE_BY_SIDE(partial(device_digits, "sgd")), tmp_path)
    diverged, fine = sorted(runner.run(rates(1e30, 1e-2)), key=lambda report: report.fork)
    runner.close()
    assert diverged.failure.kind == "not finite"
    assert diverged.failure.step == diverged.steps[-1] == diverged.stop == 10
    assert fine.failure is None
    assert {path.name for path in tmp_path.iterdir()} == {"0-0.pt", "1-20.pt"}


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

    runner = attached(SIDE_BY_SIDE(factory), tmp_path)
    failures = {report.fork: report.failure for report in runner.run(rates(1e30, 1e-2))}
    runner.close()
    assert failures[1] is None
    assert (failures[0].kind, failures[0].message) == ("raised", "ValueError: Input contains NaN")
    assert failures[0].place.startswith("test_runner.py, line ")


@pytest.mark.parametrize("keep", [True, False], ids=["in memory", "from disk"])
def test_a_clone_is_the_same_from_memory_and_from_disk(keep: bool, tmp_path: Path) -> None:
    """And as with `Local`: it draws other batches than its parent."""
    first, schedule = rates(1e-2), Schedule.constant(1e-2, 60)
    second = [Interval(0, None, 20, 40, schedule, 2), Interval(7, 0, 20, 40, schedule, 2)]
    expected = attached(Local(device_digits), tmp_path / "local")
    list(expected.run(first))
    expected_values = {report.fork: report.values["raw"] for report in expected.run(second)}
    runner = attached(SIDE_BY_SIDE(device_digits), tmp_path / "streams")
    list(runner.run(first))
    if not keep:
        runner.close()
        runner = attached(SIDE_BY_SIDE(device_digits), tmp_path / "streams")
    values = {report.fork: report.values["raw"] for report in runner.run(second)}
    runner.close()
    assert values[0] != values[7]
    for fork, column in expected_values.items():
        np.testing.assert_allclose(values[fork], column, rtol=2e-3)


def test_forks_that_wait_for_their_turn_see_the_same(tmp_path: Path) -> None:
    def values(forks: int | None) -> dict[int, tuple[float, ...]]:
        runner = attached(SIDE_BY_SIDE(device_digits, forks=forks), tmp_path / str(forks))
        reports = list(runner.run(rates(1e-3, 3e-3, 1e-2)))
        runner.close()
        return {report.fork: report.values["raw"] for report in reports}

    expected, few = values(None), values(2)
    assert expected.keys() == few.keys()
    for fork, column in expected.items():
        np.testing.assert_allclose(few[fork], column, rtol=1e-6)


def test_the_log_says_how_many_forks_train_at_a_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runner = attached(SIDE_BY_SIDE(device_digits), tmp_path)
    with caplog.at_level(logging.INFO, "paceline"):
        list(runner.run(rates(1e-3, 1e-2)))
    runner.close()
    assert caplog.messages == ["streams: 2 forks at a time, 0 MB each of the GPU's memory"]


def with_loader() -> TorchTraining:
    training = small_network()
    training.reseed(0)
    return training


def counting() -> TorchTraining:
    training = device_digits()
    training.optimizer, training.rate_ratios = CountingOptimizer(training.model.parameters()), np.ones(1)
    return training


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        (with_loader, "from a DataLoader: put the data on the device"),
        (partial(device_digits, scaler=torch.amp.GradScaler("cpu")), "a gradient scaler decides on the host"),
        (counting, "counts or decides on the host"),
    ],
)
def test_what_cannot_be_recorded_says_why_and_runs_in_turn(tmp_path: Path, factory, reason: str) -> None:
    with pytest.warns(UserWarning, match=f"streams: .*{reason}.*Continuing as local"):
        runner = attached(Streams(factory, make_stream=DeviceOnlyReplay), tmp_path / "streams")
    local = attached(Local(factory), tmp_path / "local")
    assert list(runner.run(rates(1e-3, 1e-2))) == list(local.run(rates(1e-3, 1e-2)))


def test_a_whole_study_runs_in_turn_without_a_gpu(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the model is on the cpu, which is not a GPU"):
        assert tuned(device_digits, "streams", tmp_path, steps=60).value is not None


def test_a_training_that_is_broken_says_what_it_says_in_turn(tmp_path: Path) -> None:
    def factory() -> TorchTraining:
        training = device_digits()
        training.loss = lambda model, batch: 1 / 0
        return training

    with pytest.warns(UserWarning, match=r"the step cannot be recorded \(ZeroDivisionError"):  # noqa: SIM117
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            tuned(factory, SIDE_BY_SIDE, tmp_path / "broken", steps=60)
    with pytest.raises(TrainingError, match="the training factory must return a Training"):
        tuned(object, SIDE_BY_SIDE, tmp_path / "other", steps=60)


def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(InputError, match="forks must be 1 or more, got 0"):
        Streams(device_digits, forks=0)


def test_the_global_random_state_is_left_alone(tmp_path: Path) -> None:
    attached(SIDE_BY_SIDE(device_digits), tmp_path / "first").close()
    training = device_digits()  # factories may draw from it
    before = torch.get_rng_state()
    runner = attached(SIDE_BY_SIDE(lambda: training), tmp_path / "second")
    list(runner.run(rates(1e-2)))
    runner.close()
    assert torch.equal(torch.get_rng_state(), before)
    assert load_checkpoint(tmp_path / "second" / "0-20.pt")["done"] == 20
