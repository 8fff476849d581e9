"""Studies driven by a runner: real trainings, kills at any place, and trainings that fail."""

import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from paceline.errors import InputError, PacelineError, TrainingError
from paceline.problems import Quadratic, QuadraticTraining, digits_training
from paceline.runner import Local
from paceline.shapes import Constant
from paceline.strategy import FixedSchedules
from paceline.study import Decided, Event, Report, Study, read_journal
from paceline.training import TorchTraining
from paceline.tuner import tune
from tests.tuner.toy_study import Interrupt, facts, make


def test_tune_trains_and_returns_weights_that_give_the_value(tmp_path: Path) -> None:
    result = tune(digits_training, steps=200, lr=(1e-4, 1e-1), cost=1.5, study=tmp_path)
    assert result.value is not None
    assert result.value < 0.5
    training = digits_training()
    training.model.load_state_dict(result.weights())
    assert training.evaluate is not None
    with torch.no_grad():
        assert training.evaluate(training.model.eval()) == pytest.approx(result.value, abs=1e-9)
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1
    assert Study.open(tmp_path).finished is not None
    assert set(result.seconds) == {
        *("training", "evaluation", "loading"),
        *("measure", "decide", "journal", "checkpoint"),
    }
    assert all(seconds > 0 for seconds in result.seconds.values())
    assert result.seconds["decide"] >= sum(d.seconds for d in Study.open(tmp_path).decisions)


SMALL = partial(digits_training, width=16, every=5)  # most of the time goes into validation losses


def test_interrupted_anywhere_it_ends_bit_for_bit_the_same_and_disk_stays_bounded(tmp_path: Path) -> None:
    settings = {"steps": 80, "lr": (1e-4, 1e-1), "cost": 2.3}
    whole = tune(SMALL, study=tmp_path / "whole", **settings)
    count, most = 0, 0

    def stop_at(limit: int):
        seen = 0

        def hook(event) -> None:
            nonlocal seen, most
            seen += 1
            folder = tmp_path / "again" / "checkpoints"
            most = max(most, len(list(folder.glob("*"))) if folder.exists() else 0)
            if seen == limit:
                raise Interrupt

        return hook

    limits = iter([3, 1, 5, 2, 8, 1, 4, 13, 6, 2, 9, 7])
    while True:
        count += 1
        try:
            again = tune(SMALL, study=tmp_path / "again", on_event=stop_at(next(limits, 10**9)), **settings)
            break
        except Interrupt:
            continue
    assert count > 5
    assert facts(tmp_path / "again") == facts(tmp_path / "whole")
    for name, tensor in whole.weights().items():
        assert bool((again.weights()[name] == tensor).all())
    assert most <= 8 + 1


@pytest.mark.parametrize("every", [5, pytest.param(2, marks=pytest.mark.slow)])
def test_stopped_once_after_any_report_it_goes_on(every: int, tmp_path: Path) -> None:
    settings = {"steps": 80, "lr": (1e-4, 1e-1), "cost": 2.3}
    tune(SMALL, study=tmp_path / "whole", **settings)
    whole = facts(tmp_path / "whole")
    reports = sum(isinstance(e, Report) for e in read_journal(tmp_path / "whole" / "journal.jsonl"))
    for limit in range(1, reports, every):
        seen = 0

        def stop(event) -> None:
            nonlocal seen
            seen += isinstance(event, Report)
            if seen == limit and isinstance(event, Report):
                raise Interrupt

        with pytest.raises(Interrupt):
            tune(SMALL, study=tmp_path / str(limit), on_event=stop, **settings)
        tune(SMALL, study=tmp_path / str(limit), **settings)
        assert facts(tmp_path / str(limit)) == whole


class Broken:
    """A training that raises at large rates."""

    def __init__(self, what: str) -> None:
        self.what, self.done, self.raised = what, 0, False

    def advance(self, schedule, stop):
        if self.what == "nan at first":
            yield 0, float("nan")
        while self.done < stop:
            self.done += 1
            if self.what == "once" and not self.raised and self.done > 5:  # in a later interval
                self.raised = True
                raise RuntimeError("a passing fault")
            if self.what == "always" or (self.what == "large" and schedule.multipliers[-1] > 0.01):
                raise MemoryError("out of memory")
            if self.what == "silent":
                continue
            yield (
                self.done,
                float("nan") if "nan" in self.what else 1.0 / self.done + abs(np.log10(schedule(0) / 0.003)),
            )

    def state_dict(self):
        return {"done": self.done}

    def load_state_dict(self, state) -> None:
        self.done = state["done"]


@pytest.mark.filterwarnings("ignore:no averaged values")
@pytest.mark.parametrize("what", ["once", "large"])
def test_a_fork_that_breaks_is_data(what: str) -> None:
    result = tune(lambda: Broken(what), steps=100, lr=(1e-4, 1e-1), cost=1.5)
    assert result.value is not None
    assert any(fork.failure for fork in result.history.forks)


@pytest.mark.filterwarnings("ignore:no averaged values")
@pytest.mark.parametrize(
    ("make_training", "message"),
    [
        (
            lambda: Broken("always"),
            r"failed in its first interval, at all rates \(0\.0.*MemoryError: out of memory \(test_drive.py, line \d+"
            ".* make the same call again",
        ),
        (lambda: Broken("nan"), "every fork failed.*is not finite"),
        (lambda: Broken("silent"), "yielded nothing up to step"),
        (lambda: Broken("nan"), "lower the upper bound of the rate"),
        (lambda: Broken("nan at first"), "before any update, is not finite: check what the training reports"),
        (lambda: 17, "must return a Training.*got int"),
    ],
)
def test_trainings_that_cannot_work_say_why(make_training, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        tune(make_training, steps=100, lr=(1e-4, 1e-1), cost=1.5)


@pytest.mark.filterwarnings("ignore:no averaged values")
def test_a_fork_that_breaks_later_keeps_its_traceback(tmp_path: Path) -> None:
    tune(lambda: Broken("once"), steps=100, lr=(1e-4, 1e-1), cost=1.5, study=tmp_path)
    (failure,) = [report.failure for report in Study.open(tmp_path).reports if report.failure is not None]
    assert failure.place.startswith("test_drive.py, line ")
    assert 'raise RuntimeError("a passing fault")' in failure.traceback


class Mistake:
    """A mistake in one place of a training's code, until it is corrected."""

    def __init__(self, where: str) -> None:
        self.where, self.is_corrected, self.tried = where, False, 0

    def __call__(self, where: str) -> None:
        if where == self.where and not self.is_corrected:
            raise KeyError("label")

    def training(self) -> TorchTraining:
        training = SMALL()
        loss, evaluate, advance = training.loss, training.evaluate, training.advance
        assert evaluate is not None

        def mistaken_loss(model, batch):
            self("loss")
            return loss(model, batch)

        def mistaken_step(model, optimizer, batch):
            self("step")
            optimizer.zero_grad()
            value = loss(model, batch)
            value.backward()
            optimizer.step()
            return value

        def mistaken_evaluate(model):
            self("evaluate")
            return evaluate(model)

        def counted(schedule, stop):
            self.tried += 1
            return advance(schedule, stop)

        training.loss, training.evaluate, training.advance = mistaken_loss, mistaken_evaluate, counted
        if self.where == "step":
            training.step = mistaken_step
        return training


@pytest.mark.parametrize("where", ["loss", "evaluate", "step"])
def test_a_mistake_comes_back_from_the_first_fork_and_the_same_call_goes_on(where: str, tmp_path: Path) -> None:
    settings: Any = {"steps": 80, "lr": (1e-4, 1e-1), "cost": 1.5}
    mistake = Mistake(where)
    with pytest.raises(KeyError, match="label") as raised:
        tune(mistake.training, study=tmp_path, **settings)
    assert mistake.tried == 1
    assert f"mistaken_{where}" in [frame.name for frame in raised.traceback]
    assert "make the same call again" in raised.value.__notes__[0]
    mistake.is_corrected = True
    result, whole = tune(mistake.training, study=tmp_path, **settings), tune(mistake.training, **settings)
    assert (result.value, result.fork) == (whole.value, whole.fork)
    assert not any(fork.failure for fork in result.history.forks)


@pytest.mark.parametrize(
    ("make_training", "kind", "message", "note"),
    [
        (lambda: {"image": 1.0}["label"], KeyError, "label", "the training factory raised this"),
        (lambda x: x, TypeError, "missing 1 required positional argument: 'x'", "it is called without arguments"),
        (lambda: digits_training(every=0), InputError, "every must be 1 or more", "the training factory raised this"),
    ],
)
def test_an_exception_of_the_factory_comes_back_as_it_was_raised(make_training, kind: type, message: str, note) -> None:
    with pytest.raises(kind, match=message) as raised:
        tune(make_training, steps=100, lr=(1e-4, 1e-1))
    assert type(raised.value) is kind
    assert note in raised.value.__notes__[0]
    frames = [frame.name for frame in raised.traceback]
    assert ("<lambda>" in frames) == (kind is not TypeError)  # one that cannot be called has no frame


def test_the_lowest_rate_is_tried_first_until_a_fork_has_worked() -> None:
    mistake = Mistake("loss")
    highest_first = FixedSchedules((Constant(),), runs=3, peaks=(1e-1, 1e-2, 1e-3))
    with pytest.raises(KeyError, match="label"):
        tune(mistake.training, steps=80, lr=(1e-4, 1e-1), strategy=highest_first)
    assert mistake.tried == 1


class HighFirst(Local):
    """Runs the forks with the highest rates first."""

    def run(self, intervals):
        return super().run(list(reversed(intervals)))


@pytest.mark.filterwarnings("ignore:no averaged values")
@pytest.mark.parametrize("limit", [1e-2, 0.0])
def test_an_exception_at_high_rates_waits_for_the_lowest_rate(limit: float) -> None:
    class Raising(Broken):
        def advance(self, schedule, stop):
            if schedule.multipliers[-1] > limit:
                raise ValueError("shapes do not fit")
            return super().advance(schedule, stop)

    settings: Any = {"steps": 100, "lr": (1e-4, 1e-1), "cost": 1.5, "runner": HighFirst}
    if limit:
        failed = [fork for fork in tune(lambda: Raising(""), **settings).history.forks if fork.failure]
        assert failed
        return
    with pytest.raises(ValueError, match="shapes do not fit"):
        tune(lambda: Raising(""), **settings)


@pytest.mark.filterwarnings("ignore:no averaged values", "ignore:the training is not the one")
def test_a_study_that_failed_says_that_it_is_not_run_again(tmp_path: Path) -> None:
    for what, message in (("nan", "are kept in"), ("large", "that was before, and .* is not run again")):
        with pytest.raises(TrainingError, match=f"is not finite.*{message}"):
            tune(lambda what=what: Broken(what), steps=100, lr=(1e-4, 1e-1), cost=1.5, study=tmp_path / "study")


def test_a_file_in_the_way_of_a_study_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for study in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="which is a file: choose another path"):
            make("horizon", study=study)


def test_files_of_the_user_are_never_deleted(tmp_path: Path) -> None:
    training = partial(QuadraticTraining, Quadratic(dims=4), every=4)
    (tmp_path / "precious.pt").write_text("elsewhere")

    def put(event: Event) -> None:
        if isinstance(event, Decided) and event.round == 2:
            (folder / "best.ckpt").write_text("mine")
            (folder / "99-10.pt").symlink_to(tmp_path / "precious.pt")

    folder = tmp_path / "study" / "checkpoints"
    settings = {"steps": 80, "lr": (0.01, 1.9), "cost": 1.5, "study": tmp_path / "study", "quiet": True}
    result = tune(training, on_event=put, **settings)
    assert {path.name for path in folder.iterdir()} == {"best.ckpt", "99-10.pt", result.state.name}
    assert (folder / "best.ckpt").read_text() == "mine"
    assert (tmp_path / "precious.pt").read_text() == "elsewhere"


def test_a_folder_that_holds_something_else_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "best.ckpt").touch()
    built = []
    with pytest.raises(InputError, match=r"expected a study or an empty folder, got .*choose another folder"):
        tune(lambda: built.append(1), steps=80, lr=(1e-4, 1e-1), study=tmp_path)
    assert not built
    assert [path.name for path in tmp_path.rglob("*")] == ["checkpoints", "best.ckpt"]


@pytest.mark.skipif(os.name != "posix", reason="an open folder cannot be moved there")
@pytest.mark.parametrize("action", ["move", "delete"])
def test_a_folder_that_goes_away_while_the_study_runs_is_noticed(action: str, tmp_path: Path) -> None:
    training = partial(QuadraticTraining, Quadratic(dims=4), every=4)
    settings = {"steps": 80, "lr": (0.01, 1.9), "cost": 1.5, "study": tmp_path / "study", "quiet": True}

    def go_away(event: Event) -> None:
        if isinstance(event, Report) and event.fork == 3:
            (tmp_path / "study").rename(tmp_path / "moved")
            if action == "delete":
                shutil.rmtree(tmp_path / "moved")

    with pytest.raises(PacelineError, match="while the study ran: move it back and start"):
        tune(training, on_event=go_away, **settings)
    assert not (tmp_path / "study").exists()
    if action == "move":
        (tmp_path / "moved").rename(tmp_path / "study")
        tune(training, **settings)
        tune(training, **{**settings, "study": tmp_path / "whole"})
        assert facts(tmp_path / "study") == facts(tmp_path / "whole")


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    def stop(event) -> None:
        if isinstance(event, Decided) and event.round == 2:
            raise Interrupt

    with pytest.raises(Interrupt):
        tune(digits_training, steps=80, lr=(1e-4, 1e-1), study=tmp_path, on_event=stop)
    for path in (tmp_path / "checkpoints").iterdir():
        path.unlink()
    with pytest.raises(TrainingError, match=r"checkpoint .* is missing: restore it from a copy"):
        tune(digits_training, steps=80, lr=(1e-4, 1e-1), study=tmp_path)


def test_a_study_whose_checkpoints_are_in_a_storage_is_continued_by_the_runner_that_reads_it(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "storage.json").write_text('{"storage": "s3://bucket", "folder": "x"}')
    with pytest.raises(InputError, match="keeps its checkpoints in a storage"):
        tune(digits_training, steps=60, lr=(1e-3, 1e-1), study=tmp_path / "s")


def test_a_runner_is_closed_before_its_folder_goes() -> None:
    class Slow(Local):
        def close(self) -> None:
            closed.append(folder[0].exists())

        def run(self, intervals):
            folder.append(self.checkpoints.folder)
            yield from super().run(intervals)

    folder, closed = [], []
    tune(digits_training, steps=60, lr=(1e-3, 1e-1), runner=Slow)
    assert closed[0]
