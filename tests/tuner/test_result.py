"""What a study found, and how it prints."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from paceline.problems import Quadratic, QuadraticTraining
from paceline.tuner import tune
from tests.tuner.toy_study import drive, make


def test_results_and_studies_are_one_line_when_printed(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    assert re.fullmatch(r"Study\('.*', \d+ events, not over\)", repr(tuner.study))
    result = drive(tuner).result
    tuner.close()
    assert re.fullmatch(r"Result\(value=[\d.e-]+, value_of='averaged', fork=\d+, step=400, steps=400\)", repr(result))
    assert "finished" in repr(result.study)
    assert "with your own training" in str(result)
    assert repr(replace(result, fork=None, advice="lower it")) == "Result(no fork reached the end: lower it)"
    assert str(replace(result, fork=None, advice="lower it")) == "no fork reached the end: lower it"


def test_a_result_prints_value_step_peak_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make = partial(QuadraticTraining, Quadratic(dims=5))
    result = tune(make, steps=200, lr=(1e-3, 1.0), cost=1.5, study="runs/a", quiet=True)
    assert result.schedule is not None
    value, rate, study = str(result).splitlines()
    assert value.startswith(f"value  {result.value:.6g} at step 200 of 200 (")
    peak = max(result.schedule(step) for step in range(200))
    assert rate.startswith(f"rate   {peak:.4g} at its peak, times a warmup-stable-decay base (fork {result.fork})")
    assert study == f"study  {tmp_path / 'runs' / 'a'}"
    assert "study  not kept: pass study=" in str(tune(make, steps=200, lr=(1e-3, 1.0), cost=1.5, quiet=True))
