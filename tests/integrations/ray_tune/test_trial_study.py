"""The study behind the trials: which trial gets which interval, without a cluster."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray.tune")

from paceline.integrations.ray_tune.trial_record import TrialRecord
from paceline.integrations.ray_tune.trial_study import TrialStudy
from paceline.strategy import Dynamic, ForkPlan, Rung
from paceline.study import Failure, Report, read_journal
from paceline.tuner import Tuner

PLAN = ForkPlan(2, (Rung(1 / 3, 2, 1),), protect_leader=True)
STRATEGY = replace(Dynamic.horizon(forks=2), plan=PLAN, weights="raw")
TRIALS = {"a": False, "b": False}


def open_study(folder: Path) -> TrialStudy:
    record = TrialRecord(folder)
    record.count = 2
    study = TrialStudy(record, lambda: Tuner(lr=(0.01, 1.0), steps=9, strategy=STRATEGY, study=folder))
    study.report()
    return study


def start_all(study: TrialStudy, trials: dict[str, bool] = TRIALS) -> dict[str, int]:
    """Give trials their intervals; the fork of each."""
    while (assignment := study.next_assignment(trials)) is not None:
        study.start(*assignment)
    return {name: each.interval.fork for name, each in sorted(study.running.items())}


def finish(study: TrialStudy, trial: str, value: float) -> None:
    running = study.running.pop(trial)
    running.observe(running.interval.stop, value)
    study.report(running)


def test_trials_get_forks_in_order_and_only_once_all_are_there(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    assert study.next_assignment({"a": False}) is None
    assert study.interval_for_added("a") is not None
    assert start_all(study) == {"a": 0, "b": 1}
    assert study.next_assignment(TRIALS) is None
    assert TrialRecord(tmp_path).fork_of == {"a": 0, "b": 1}


def test_a_clone_gets_the_trial_whose_fork_is_dropped(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    start_all(study)
    finish(study, "a", 2.0)
    assert study.next_assignment(TRIALS) is None  # the round is not over
    finish(study, "b", 1.0)
    assert start_all(study) == {"a": 2, "b": 1}
    assert study.running["a"].origin == (1, 3)
    finish(study, "a", 0.5)
    finish(study, "b", 0.7)
    assert study.is_over
    assert study.next_assignment(TRIALS) is None


def test_a_trial_that_is_added_again_begins_its_interval_again(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    start_all(study)
    interrupted = study.running["b"]
    interrupted.observe(1, 3.0)
    again = study.interval_for_added("b")
    assert again is interrupted
    started = study.start("b", again)
    assert (started.interval, started.steps) == (interrupted.interval, [])


def test_a_restored_study_gives_every_trial_its_fork_back(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    start_all(study)
    finish(study, "a", 2.0)
    restored = open_study(tmp_path)
    assert restored.interval_for_added("a") is None  # its report is in the journal
    waiting = restored.interval_for_added("b")
    assert waiting is not None
    assert waiting.interval.fork == 1


def test_without_a_trial_left_an_interval_fails(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    start_all(study)
    study.mark_failed("a")
    failed = study.running.pop("a")
    study.report(replace(failed, failure="its trial ended with an error"))
    finish(study, "b", 1.0)
    assert start_all(study) == {"b": 1}
    failures = [e.failure for e in read_journal(tmp_path / "journal.jsonl") if isinstance(e, Report) and e.failure]
    assert failures[0] == Failure("raised", "its trial ended with an error")
    assert set(failures[1:]) == {Failure("raised", "no trial is left to run it")}
    assert failures[1:]
