"""A loop that is shorter than `steps` is told about when it is over, and only then."""

import gc
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch.optim import SGD

from paceline import PaceLR
from paceline.integrations.unfinished_run import unfinished_run

MESSAGE = "a run with PaceLR ended"
SCRIPT = """
import torch, paceline
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
pace = paceline.PaceLR(optimizer, lr=(1e-4, 1e-2), steps=200)
for i in range(100):
    loss = model(torch.ones(1, 4)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step(); pace.step(loss)
    {inside}
{end}
"""


def run(done: int, steps: int = 100, *, end: str = "") -> list[str]:
    """What is said when a PaceLR goes after so many steps."""
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = SGD([weight], lr=0.1)
    pace = PaceLR(optimizer, lr=(1e-3, 0.1), steps=steps)
    for _ in range(done):
        optimizer.zero_grad()
        loss = weight.square().sum()
        loss.backward()
        optimizer.step()
        pace.step(loss)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if end == "save":
            pace.state_dict()
        elif end == "pickle":
            pickle.loads(pickle.dumps(pace))
        elif end == "close":
            pace.close()
        elif end == "load":
            pace.load_state_dict(pace.state_dict())
        del pace
        gc.collect()
    return [str(warning.message) for warning in caught if MESSAGE in str(warning.message)]


@pytest.mark.parametrize(
    ("done", "where"), [(10, "10 of 100, within the range test"), (50, "50 of 100, at"), (85, "85 of 100, at")]
)
def test_a_run_that_ends_near_its_peak_is_told_about(done: int, where: str) -> None:
    (message,) = run(done)
    assert f"ended at step {where}" in message
    assert "pass as steps= how often the loop calls pace.step" in message


@pytest.mark.parametrize("done", [0, 97, 100])
def test_a_run_that_has_not_begun_or_has_decayed_is_not(done: int) -> None:
    assert not run(done)


@pytest.mark.parametrize("end", ["save", "pickle", "close", "load"])
def test_a_run_that_was_saved_or_ended_on_purpose_is_not(end: str) -> None:
    assert not run(50, end=end)


@pytest.mark.parametrize(
    ("inside", "end", "is_told"),
    [("pass", "raise SystemExit(0)", True), ("[0][i // 50]", "", False)],
)
def test_a_program_that_ends_says_so_unless_an_exception_ended_it(inside: str, end: str, is_told: bool) -> None:
    source = str(Path(__file__).parents[2] / "src")
    code = SCRIPT.format(inside=inside, end=end)
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True)
    assert (MESSAGE in done.stderr) == is_told, done.stderr


def test_it_names_the_steps_of_the_optimiser_if_they_are_more() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = SGD([weight], lr=0.1)
    pace = PaceLR(optimizer, lr=(1e-3, 0.1), steps=100)
    for _ in range(30):
        for _ in range(5):
            optimizer.zero_grad()
            loss = weight.square().sum()
            loss.backward()
            optimizer.step()
        pace.step(loss)
    assert "step 30 of 100 (after 150 steps of the optimiser)" in unfinished_run(pace.controller, 150)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del pace
        gc.collect()
    assert any("after 150 steps" in str(warning.message) for warning in caught)
