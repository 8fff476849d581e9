"""What goes wrong in practice: each has a clear outcome with advice, and nothing already learnt is lost."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.errors import InputError, JournalError, TrainingError
from paceline.problems import digits_training
from paceline.strategy import Dynamic
from paceline.study import Decided, Report, Study, read_journal
from paceline.tuner import Tuner, tune
from tests.forged_lines import forge
from tests.tuner.toy_study import Interrupt, drive, facts, make

SETTINGS = {"steps": 80, "lr": (1e-4, 1e-1)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list:
    """What the undisturbed study decided and saw."""
    folder = tmp_path_factory.mktemp("whole")
    tune(digits_training, study=folder, **SETTINGS)
    return facts(folder)


LIMITED = """
import resource, sys
from pathlib import Path
from paceline import tune
from paceline.errors import PacelineError
from paceline.problems import digits_training
from paceline.study import Report

folder, what = Path(sys.argv[1]), sys.argv[2]

def fill_the_disk(event):
    if what == "checkpoint" and isinstance(event, Report) and event.fork == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    if what == "journal" and isinstance(event, Report) and event.fork == 7:  # ten bytes of the next line still fit
        size = (folder / "journal.jsonl").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))

try:
    tune(digits_training, steps=80, lr=(1e-4, 1e-1), study=folder, on_event=fill_the_disk)
except PacelineError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("checkpoint", "TrainingError the checkpoint .*could not be written .File too large.: free disk space"),
        ("journal", "JournalError .*journal.jsonl could not be written .File too large.: free disk space"),
    ],
)
def test_a_full_disk_stops_the_study_and_it_goes_on_later(what: str, message: str, whole: list, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "study"), what]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.search(message, said), said
    assert len(read_journal(tmp_path / "study" / "journal.jsonl")) > 10
    tune(digits_training, study=tmp_path / "study", **SETTINGS)
    assert facts(tmp_path / "study") == whole


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tuner(lr=(-1e-3, 1e-1), steps=100), "0 < low < high"),
        (lambda: Tuner(lr=(1e-1, 1e-1), steps=100), "two different positive numbers"),
        (lambda: Tuner(lr=(1e-4, float("inf")), steps=100), "bounds must be finite"),
        (
            lambda: Tuner(lr=(1e-4, 1e-1), steps=100, strategy=Dynamic.horizon(initial_rates=(0.0,) * 8)),
            "within the bounds",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


class Faulty:
    """A training of our own making, with a fault at one rate (the third of eight) or at all."""

    def __init__(self, fault: str, where: str = "one") -> None:
        self.fault, self.where, self.done = fault, where, 0

    def advance(self, schedule, stop):
        hit = self.where == "all" or abs(np.log10(schedule.multipliers[0] / 1e-4) - 3 * 2.5 / 8) < 0.01
        while self.done < stop:
            self.done += 1
            value = 1.0 / self.done + abs(np.log10(schedule(0) / 0.003))
            if hit and self.fault == "memory":
                raise torch.OutOfMemoryError("CUDA out of memory")
            yield self.done, {"averaged": float("nan") if hit and self.fault == "nan" else value}

    def state_dict(self):
        return {"done": self.done}

    def load_state_dict(self, state) -> None:
        self.done = state["done"]


def failures(folder: Path) -> list[Report]:
    events = read_journal(folder / "journal.jsonl")
    return [event for event in events if isinstance(event, Report) and event.failure is not None]


@pytest.mark.parametrize("fault", ["nan", "memory"])
def test_one_fork_that_fails_from_the_first_step_costs_only_itself(fault: str, tmp_path: Path) -> None:
    result = tune(lambda: Faulty(fault), study=tmp_path, **SETTINGS)
    assert result.value is not None
    failed = failures(tmp_path)
    assert [e.fork for e in failed] == [2]
    assert result.history.fork(2).failure == failed[0].failure
    assert len(failed[0].steps) <= 1  # it was not run on


def test_when_all_fail_from_the_first_step_the_study_says_so_and_stays(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"every fork failed.*step 1 is not finite.*are kept in"):
        tune(lambda: Faulty("nan", "all"), study=tmp_path, **SETTINGS)
    assert len(Study.open(tmp_path).reports) == 8
    with pytest.raises(TrainingError, match="every fork failed"):
        tune(lambda: Faulty("nan", "all"), study=tmp_path, **SETTINGS)


def test_when_no_fork_has_room_the_study_waits_for_more(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingError, match=r"in its first interval, at all rates.*CUDA out of memory.*same call again"
    ):
        tune(lambda: Faulty("memory", "all"), study=tmp_path, **SETTINGS)
    assert not Study.open(tmp_path).reports
    assert tune(lambda: Faulty("none"), study=tmp_path, **SETTINGS).value is not None


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (lambda t: 2.0, "never changed: check that it depends on the weights"),
        (lambda t: 1.0 + 0.01 * t, "got worse at every rate: check mode"),
        (lambda t: 3.0 - 0.001 * t, ""),
    ],
)
@pytest.mark.filterwarnings("ignore:no value became clearly better")
def test_a_value_that_does_not_improve_has_a_result_and_advice(value, advice: str) -> None:
    tuner = make("horizon")
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            steps = list(range(p.start + 5, p.stop + 1, 5))
            tuner.tell(p, steps, {"averaged": [value(t) for t in steps]})
    assert tuner.result.value is not None
    assert advice in tuner.result.advice
    assert bool(advice) == bool(tuner.result.advice)


def stopped(folder: Path) -> Path:
    """A study stopped at its second decision."""

    def stop(event) -> None:
        if isinstance(event, Decided) and event.round == 2:
            raise Interrupt

    with pytest.raises(Interrupt):
        tune(digits_training, study=folder, on_event=stop, **SETTINGS)
    return folder


def test_a_damaged_checkpoint_stops_the_study_and_a_restored_one_lets_it_go_on(whole: list, tmp_path: Path) -> None:
    kept = {path: path.read_bytes() for path in (stopped(tmp_path / "study") / "checkpoints").iterdir()}
    for path in kept:
        path.write_bytes(kept[path][: len(kept[path]) // 2])
    with pytest.raises(TrainingError, match=r"cannot be read .*: restore it from a copy"):
        tune(digits_training, study=tmp_path / "study", **SETTINGS)
    for path, content in kept.items():
        path.write_bytes(content)
    tune(digits_training, study=tmp_path / "study", **SETTINGS)
    assert facts(tmp_path / "study") == whole


def test_another_model_on_the_same_study_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    before = len(read_journal(stopped(tmp_path) / "journal.jsonl"))
    refused = r"does not fit the training .*: build the training that the study started with"
    with pytest.warns(UserWarning, match="began with: parameters was"), pytest.raises(TrainingError, match=refused):
        tune(lambda: digits_training(width=8), study=tmp_path, **SETTINGS)
    assert not failures(tmp_path)
    assert before <= len(read_journal(tmp_path / "journal.jsonl"))
    assert tune(digits_training, study=tmp_path, **SETTINGS).value is not None


def test_a_state_that_could_run_code_is_refused(tmp_path: Path) -> None:
    class Odd(Faulty):
        def state_dict(self):
            return {"done": self.done, "odd": Path}

    with pytest.raises(TrainingError, match="must hold only tensors, arrays, numbers, strings, lists and dicts"):
        tune(lambda: Odd("none"), study=tmp_path, **SETTINGS)


@pytest.mark.parametrize(
    ("kind", "field", "value"), [("observed", "fork", 77), ("dropped", "fork", 77), ("proposed", "parent", 77)]
)
def test_events_that_do_not_follow_are_noticed(kind: str, field: str, value: int, tmp_path: Path) -> None:
    drive(make("horizon", study=tmp_path), most=20).close()

    def change(events: list) -> None:
        wanted = [e for e in events if e["event"] == kind and (kind != "proposed" or e["start"] > 0)]
        wanted[0][field] = value
        if kind == "proposed":
            wanted[0]["fork"] = 99

    forge(tmp_path / "journal.jsonl", change)
    with pytest.raises(JournalError, match="was edited, restore it"):
        make("horizon", study=tmp_path)


def test_settings_lost_with_study_json_are_still_held_by_the_journal(tmp_path: Path) -> None:
    drive(make("horizon", study=tmp_path), most=5).close()
    (tmp_path / "study.json").unlink()
    with pytest.raises(InputError, match="other settings"):
        make("greedy", study=tmp_path)
    drive(make("horizon", study=tmp_path)).close()
    assert Study.open(tmp_path).finished is not None


def test_a_study_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    drive(make("horizon", study=tmp_path), most=5).close()
    settings = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps({**settings, "format": 99, "paceline": "9.0"}))
    before = (tmp_path / "journal.jsonl").read_bytes()
    with pytest.raises(JournalError, match="install a newer paceline"):
        make("horizon", study=tmp_path)
    assert (tmp_path / "journal.jsonl").read_bytes() == before
