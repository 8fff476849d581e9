"""The loop: ask and tell, and going on after an interruption anywhere."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.errors import InputError, JournalError, TrainingError
from paceline.problems import digits_training
from paceline.runner import Local
from paceline.shapes import Cosine, Linear
from paceline.strategy import (
    AutoLRS,
    ByModel,
    Dynamic,
    FixedSchedules,
    PopulationBasedBandits,
    PopulationBasedTraining,
    Strategy,
)
from paceline.study import Decided, Dropped, Finished, Interval, Study, read_journal
from paceline.tuner import Tuner, tune

STRATEGIES: dict[str, Strategy] = {
    "horizon": Dynamic.horizon(),
    "horizon-1.5": Dynamic.horizon(cost=1.5),
    "horizon-3.2": Dynamic.horizon(cost=3.2),
    "horizon-5": Dynamic.horizon(cost=5),
    "model": replace(Dynamic.horizon(), chooser=ByModel(clock="log")),
    "model-5": replace(Dynamic.horizon(cost=5, look="now"), chooser=ByModel(clock="log")),
    "greedy": Dynamic.greedy(intervals=6),
    "greedy-1": Dynamic.greedy(forks=1, intervals=4),
    "keep-each": Dynamic.greedy(forks=3, intervals=4, keep_each=True),
    "grid": FixedSchedules((Linear(), Cosine()), runs=4),
    "random": FixedSchedules((Linear(), Cosine()), runs=3, search="random"),
    "pbt": PopulationBasedTraining(forks=4, intervals=5),
    "pb2": PopulationBasedBandits(forks=4, intervals=5),
    "autolrs": AutoLRS(trials=3, stages=(1, 2, 2)),
}


def loss(p: Interval, every: int = 5) -> tuple[list[int], dict[str, list[float]]]:
    """A toy run: falls fastest at a rate of 0.01, and depends on the schedule alone."""
    steps = list(range(p.start + every, p.stop + 1, every))
    fit = np.cumsum(1.0 / (1.0 + np.log10(p.schedule(np.arange(p.stop)) / 0.01) ** 2))
    raw = [3.0 * float(np.exp(-fit[t - 1] / 150)) + 0.1 for t in steps]
    return steps, {"raw": raw, "averaged": [0.99 * v for v in raw]}


def drive(tuner: Tuner, most: int = 10**6) -> Tuner:
    """Report on proposals until the study is over, or `most` reports were made."""
    while (proposals := tuner.ask()) is not None and most > 0:
        for p in proposals[:most]:
            tuner.tell(p, *loss(p))
            most -= 1
    return tuner


def make(strategy: str, **settings) -> Tuner:
    return Tuner(lr=(1e-4, 1e-1), steps=400, strategy=STRATEGIES[strategy], **settings)


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_ends_within_its_cost_with_a_winner(name: str) -> None:
    events = []
    tuner = drive(make(name, on_event=events.append))
    spent = sum(e.stop - e.start for e in events if isinstance(e, Interval))
    assert spent <= tuner.total_steps
    result = tuner.result
    assert result.schedule is not None
    assert result.schedule.steps == 400
    assert isinstance(events[-1], Finished)
    assert result.value is not None
    assert result.value < 2.0
    decisions = [e for e in events if isinstance(e, Decided)]
    assert all(d.reasons for d in decisions)


def test_horizon_finds_the_rate_and_costs_what_it_says() -> None:
    tuner = drive(make("horizon"))
    assert tuner.total_steps <= 2.3 * 400
    schedule = tuner.result.schedule
    assert schedule is not None
    assert 0.003 < schedule.multipliers[-1] < 0.1


@pytest.mark.parametrize("cost", [1.1, 1.3, 1.5, 1.7, 2.0, 2.3, 2.6, 3.0, 3.2, 4.0, 5.5])
def test_any_cost_is_kept(cost: float) -> None:
    strategy = Dynamic.horizon(cost=cost)
    for steps in (400, 1000, 1237):
        tuner = Tuner(lr=(1e-4, 1e-1), steps=steps, strategy=strategy)
        assert tuner.total_steps <= cost * steps


def test_no_plan_takes_more_steps_than_its_cost() -> None:
    for cost in np.linspace(1.2, 8.0, 137):
        plan = Dynamic.horizon(cost=float(cost)).plan
        for steps in (*range(40, 120, 7), 403, 1237, 4999):
            assert steps <= plan.total_steps(steps) <= cost * steps


@pytest.mark.parametrize("name", ["horizon", "greedy", "pb2"])
def test_reports_in_any_order_give_the_same_decisions(name: str) -> None:
    def run(reverse: bool) -> list[dict]:
        tuner = make(name)
        while (proposals := tuner.ask()) is not None:
            for p in reversed(proposals) if reverse else proposals:
                tuner.tell(p, *loss(p))
        return [fork.schedule.to_json() for fork in tuner.history.forks]

    assert run(reverse=False) == run(reverse=True)


def facts(path: Path) -> list:
    """What a study decided and saw, without how long it took."""
    kept = [e for e in read_journal(path / "journal.jsonl") if isinstance(e, Interval | Observed | Dropped | Finished)]
    return sorted(map(repr, kept))


def cuts(lines: list[bytes]) -> list[int]:
    """Every line but those in the midst of lines of their kind, where a study stands as it does one line further."""
    kinds = [json.loads(line)["event"] for line in lines]
    return [i for i in range(1, len(lines)) if len(set(kinds[i - 1 : i + 2])) > 1]


# the loop is the same for all: with a model, which is slow, some of the lines, of each kind in one round or another
@pytest.mark.parametrize(
    ("name", "every"), [("horizon", 1), ("model", 3), ("keep-each", 2), ("pb2", 1), ("autolrs", 1)]
)
def test_cut_after_any_line_a_study_goes_on_with_the_same_decisions(name: str, every: int, tmp_path: Path) -> None:
    drive(make(name, study=tmp_path / "whole")).close()
    whole = facts(tmp_path / "whole")
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in cuts(lines)[::every]:
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "study.json", folder)
        torn = lines[cut][: len(lines[cut]) // 2]
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + torn)
        drive(make(name, study=folder)).close()
        assert facts(folder) == whole, cut


def test_ask_waits_and_a_finished_study_stays_finished(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    first = tuner.ask()
    assert first
    assert tuner.ask() == []
    with pytest.raises(InputError, match="8 proposals are open"):
        tuner.result  # noqa: B018
    for p in first:
        tuner.tell(p, *loss(p))
    value = drive(tuner).result.value
    tuner.close()
    again = make("horizon", study=tmp_path)
    assert again.ask() is None
    assert again.result.value == value
    again.close()


def test_other_settings_on_the_same_folder_are_refused(tmp_path: Path) -> None:
    make("horizon", study=tmp_path).close()
    with pytest.raises(
        InputError,
        match=r"other settings \(strategy, total_steps\): pass the same ones.* it, total_steps \d+ and not total_steps",
    ):
        make("greedy", study=tmp_path)
    with pytest.raises(
        InputError, match=r"continue it, steps 400, total_steps \d+ and not steps 500, total_steps \d+, or choose"
    ):
        Tuner(lr=(1e-4, 1e-1), steps=500, study=tmp_path)
    make("horizon", study=tmp_path).close()


def test_a_decision_that_was_edited_is_noticed(tmp_path: Path) -> None:
    drive(make("horizon", study=tmp_path), most=8).close()
    path = tmp_path / "journal.jsonl"
    lines = path.read_text().splitlines()
    last = max(i for i, line in enumerate(lines) if '"event":"proposed"' in line)
    path.write_text("\n".join([*lines[: last - 1], lines[last - 1].replace('"fork":', '"fork":9')]) + "\n")
    with pytest.raises(JournalError, match="was edited, restore it"):
        make("horizon", study=tmp_path)


def test_failed_forks_are_never_cloned_and_the_study_goes_on() -> None:
    events = []
    tuner = make("horizon-5", on_event=events.append)
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            steps, values = loss(p)
            if p.schedule.multipliers[-1] > 0.02:
                values["averaged"][-1] = float("nan")
            tuner.tell(p, steps, values)
    failed = {f.id for f in tuner.history.forks if f.failure}
    assert failed
    assert not {e.parent for e in events if isinstance(e, Interval)} & failed
    assert tuner.result.fork not in failed


@pytest.mark.parametrize("name", ["horizon", "greedy", "grid", "pbt", "autolrs"])
def test_when_every_fork_fails_the_study_ends_with_advice(name: str) -> None:
    tuner = make(name)
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            tuner.fail(p, "out of memory")
    assert tuner.result.schedule is None
    assert "every" in tuner.result.advice


@pytest.mark.parametrize("values", [lambda t: 1.0, lambda t: 1.0 + 0.01 * t, lambda t: -5.0 + 0.001 * t])
def test_values_that_never_change_get_worse_or_are_negative(values) -> None:
    for name in ("horizon", "greedy"):
        tuner = make(name)
        while (proposals := tuner.ask()) is not None:
            for p in proposals:
                steps = list(range(p.start + 5, p.stop + 1, 5))
                tuner.tell(p, steps, {"raw": [values(t) for t in steps], "averaged": [values(t) for t in steps]})
        assert tuner.result.value is not None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tuner(lr=(1e-1, 1e-4), steps=100), "swap them"),
        (lambda: Tuner(lr=(0.0, 1e-4), steps=100), "0 < low < high"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=20), "20 steps are too few for rungs.*train for 40 steps or more"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=0), "at least 1, got 0"),
        (lambda: Dynamic.horizon(forks=0), "forks must be at least 1, got 0"),
        (lambda: Dynamic.greedy(forks=0), "forks must be at least 1, got 0"),
        (lambda: Dynamic.horizon(cost=0.5), "costs at least 1.1 runs, got 0.5"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=400, cost=float("inf")), "finite number of runs, got inf"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=19, cost=1), "at least 20, got 19"),
        (lambda: Dynamic.horizon(first=(0.1,)), "8 rates, one per fork, got 1"),
        (lambda: Dynamic.greedy(link="cubic"), "unknown link 'cubic': use one of linear"),
        (lambda: Dynamic.greedy(order=4), "order 1, 2 or 3"),
        (lambda: Dynamic.greedy(intervals=0), "intervals must be at least 1, got 0"),
        (lambda: Tuner(lr=(1e-4, 1e-1), steps=100, seed=-1), "seed must not be negative, got -1"),
    ],
)
def test_bad_settings_say_what_to_do(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [
        ([], [], "reported nothing between steps 0 and 10"),
        ([5, 5], [1.0, 1.0], r"must increase within \(0, 10\]"),
        ([5, 11], [1.0, 1.0], r"must increase within \(0, 10\]"),
        ([5, 10], [1.0], "one value per step"),
        ([5], {"mean": [1.0]}, "one value per step"),
    ],
)
def test_bad_reports_say_what_to_do(steps, values, message: str) -> None:
    tuner = make("horizon")
    proposals = tuner.ask()
    assert proposals
    with pytest.raises(InputError, match=message):
        tuner.tell(proposals[0], steps, values)
    tuner.tell(proposals[0], *loss(proposals[0]))
    with pytest.raises(InputError, match="no open proposal like this"):
        tuner.tell(proposals[0], *loss(proposals[0]))


def test_a_failure_reported_twice_is_refused_before_it_is_written(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    proposals = tuner.ask()
    assert proposals
    tuner.fail(proposals[0], "out of memory")
    with pytest.raises(InputError, match="no open proposal like this"):
        tuner.fail(proposals[0], "out of memory")
    tuner.close()
    again = drive(make("horizon", study=tmp_path))
    assert again.result.fork is not None
    again.close()


# with a real training


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
    assert set(result.seconds) == {"training", "decide", "journal", "checkpoint"}
    assert all(seconds > 0 for seconds in result.seconds.values())
    assert result.seconds["decide"] >= sum(d.seconds for d in Study.open(tmp_path).decisions)


class Interrupt(BaseException):
    pass


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


def test_stopped_once_after_any_report_it_goes_on(tmp_path: Path) -> None:
    settings = {"steps": 80, "lr": (1e-4, 1e-1), "cost": 2.3}
    tune(SMALL, study=tmp_path / "whole", **settings)
    whole = facts(tmp_path / "whole")
    reports = sum(isinstance(e, Observed) for e in read_journal(tmp_path / "whole" / "journal.jsonl"))
    for limit in range(1, reports, 2):
        seen = 0

        def stop(event) -> None:
            nonlocal seen
            seen += isinstance(event, Observed)
            if seen == limit and isinstance(event, Observed):
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
            if self.what == "once" and not self.raised:
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
        (lambda: Broken("always"), "every fork failed.*MemoryError: out of memory.*pass study= to keep"),
        (lambda: Broken("nan"), "every fork failed.*is not finite"),
        (lambda: Broken("silent"), "every fork failed.*yielded nothing up to step"),
        (
            lambda: Broken("always"),
            r"not for their rates, so run the training once by hand.*\(test_tuner.py, line \d+\)",
        ),
        (lambda: Broken("nan"), "lower the upper bound of the rate"),
        (lambda: Broken("nan at first"), "not for their rates, since no update was made yet: check what is reported"),
        (lambda: 17, "must return a Training.*got int"),
        (lambda x: x, "missing 1 required positional argument: 'x'; it is called with nothing"),
        (lambda: 1 / 0, "factory raised ZeroDivisionError"),
    ],
)
def test_trainings_that_cannot_work_say_why(make_training, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        tune(make_training, steps=100, lr=(1e-4, 1e-1), cost=1.5)


@pytest.mark.filterwarnings("ignore:no averaged values")
def test_a_study_that_failed_says_that_it_is_not_run_again(tmp_path: Path) -> None:
    for what, message in (("always", "are kept in"), ("large", "that was before, and .* is not run again")):
        with pytest.raises(TrainingError, match=f"out of memory.*{message}"):
            tune(lambda what=what: Broken(what), steps=100, lr=(1e-4, 1e-1), cost=1.5, study=tmp_path / "study")


def test_a_file_in_the_way_of_a_study_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for study in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError, match="where a file is in the way: choose another path"):
            make("horizon", study=study)


def test_results_and_studies_are_one_line_when_printed(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    assert re.fullmatch(r"Study\('.*', \d+ events, not over\)", repr(tuner.study))
    result = drive(tuner).result
    tuner.close()
    assert re.fullmatch(r"Result\(value=[\d.e-]+, of='averaged', fork=\d+, steps=400\)", repr(result))
    assert "finished" in repr(result.study)
    assert repr(replace(result, fork=None, advice="lower it")) == "Result(no fork reached the end: lower it)"


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

        def run(self, tasks):
            folder.append(tasks[0].target.parent)
            yield from super().run(tasks)

    folder, closed = [], []
    tune(digits_training, steps=60, lr=(1e-3, 1e-1), runner=Slow)
    assert closed[0]
