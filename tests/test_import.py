"""`import paceline` is light and leaves the process as it found it."""

import subprocess
import sys

import pytest

import paceline

PROBE = """
import random, sys, time
import numpy, torch
def state():
    return (torch.get_default_dtype(), torch.get_num_threads(), torch.initial_seed(), random.getstate(),
            numpy.random.get_state()[1].tolist(), torch.is_grad_enabled(), torch.get_rng_state().tolist())
before = state()
import paceline
unwanted = "gpytorch scipy.optimize rich sklearn matplotlib plotly paceline.model paceline.views"
for heavy in unwanted.split():
    assert heavy not in sys.modules, heavy
paceline.TraceModel, paceline.Trace, paceline.Tuner
assert "gpytorch" not in sys.modules and "scipy.optimize" not in sys.modules
assert state() == before
"""

WITHOUT_FCNTL = """
import importlib, pkgutil, sys
sys.modules["fcntl"] = None  # as on Windows: importing it raises an ImportError
import paceline
names = [module.name for module in pkgutil.walk_packages(paceline.__path__, "paceline.")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""

TIMING = """
import time
begin = time.perf_counter(); import torch; middle = time.perf_counter()
import paceline; paceline.TraceModel
print((time.perf_counter() - middle) / (middle - begin))
"""


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_import_changes_nothing_and_loads_nothing_heavy() -> None:
    run(PROBE)


def test_every_module_is_imported_without_fcntl() -> None:
    assert int(run(WITHOUT_FCNTL)) > 150


def test_import_is_quick_beside_torch() -> None:
    run(TIMING)  # warm file caches
    assert sorted(float(run(TIMING)) for _ in range(3))[1] < 0.3


def test_few_public_names_and_a_clear_error() -> None:
    assert len(paceline.__all__) - 1 <= 15
    assert set(paceline.__all__) == set(dir(paceline))
    for name in paceline.__all__:
        assert getattr(paceline, name) is not None
    with pytest.raises(AttributeError, match=r"no attribute 'Schedul': it offers .*Schedule"):
        paceline.Schedul  # noqa: B018


WRONG_TYPES = """
import numpy as np
from paceline import InputError, Objective, Schedule, Trace, TraceModel
run = Trace([0, 10, 20], [3, 2, 1], Schedule.constant(0.1, 20))
for call, message in (
    (lambda: TraceModel.fit(run), "put a single trace in a list"),
    (lambda: TraceModel.fit(["a"]), "expected a list of Trace"),
    (lambda: TraceModel.fit([run], intervals=[0, 0.25, 1]), "increasing whole steps"),
    (lambda: TraceModel.fit([run], lr=1e-3), "a pair (low, high), got 0.001"),
    (lambda: TraceModel.fit([run], tasks=["a", "b"]), "dimensions of the embedding"),
    (lambda: TraceModel.fit([run]).quantile(0.5, 1e-2, start=run.head(2)), "list of candidates"),
    (lambda: Objective("smallest"), "must be one of ('min', 'max'), got 'smallest'"),
    (lambda: Objective(weights="both"), "must be one of ('raw', 'averaged'), got 'both'"),
    (lambda: Trace(["a"], [1.0], run.schedule), "must be numbers"),
):
    try:
        call()
    except InputError as error:
        assert message in str(error), str(error)
    else:
        raise AssertionError(message)
assert TraceModel.fit([run]).forecast(run.schedule, 20).mean.shape == (1,)
assert TraceModel.fit([run], intervals=np.int64(2)).segments
"""


def test_values_of_the_wrong_type_say_what_to_do_without_a_type_checker() -> None:
    run(WRONG_TYPES)
