"""The experiment with nanoGPT's character model, on a tiny setting."""

import numpy as np
import pytest
import torch

from benchmarks._problems import shakespeare
from experiments import nanogpt
from experiments._nanogpt_training import (
    CLIP,
    DECAY,
    SETTINGS,
    WARMUP,
    HeldOut,
    Setting,
    decay_groups,
    language_model,
    losses,
    script_shape,
)
from paceline import Schedule

try:
    shakespeare()
except SystemExit as missing:
    pytest.skip(str(missing), allow_module_level=True)

TINY = Setting(1, 2, 16, 16, 0.1, 4, 60, 10, 20, None, characters=3000)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "cpu", TINY)


def test_the_public_model_has_as_many_parameters_as_published() -> None:
    model = language_model(SETTINGS["gpu"], seed=0)
    without_positions = sum(p.numel() for p in model.parameters()) - model.place.weight.numel()
    assert round(without_positions / 1e6, 2) == 10.65  # as nanoGPT prints: "number of parameters: 10.65M"
    decayed, others = decay_groups(model)
    assert (decayed["weight_decay"], others["weight_decay"], CLIP) == (DECAY, 0.0, 1.0)
    assert all(p.ndim == 1 for p in others["params"])


def test_every_held_out_character_but_the_first_counts_once() -> None:
    model = language_model(TINY, seed=0).eval()
    judge = HeldOut("all", TINY, CPU)
    with torch.no_grad():
        value = judge(model)
        _, text, _ = shakespeare()
        pieces = [text[i : i + TINY.context + 1] for i in range(0, len(text) - 1, TINY.context)]
        summed = sum(float(losses(model, piece[None]).sum()) for piece in pieces)
    assert float(value) == pytest.approx(summed / (len(text) - 1), rel=1e-3)  # the last piece sees more context here
    first, second = float(judge.latest["first half"]), float(judge.latest["second half"])
    assert (first + second) / 2 == pytest.approx(float(value), rel=1e-2)
    assert first != second


def test_the_scripts_schedule_is_the_published_one() -> None:
    setting = SETTINGS["gpu"]
    schedule = Schedule.of(script_shape(setting), 1e-3, setting.steps)
    assert schedule(0) == pytest.approx(1e-3 / (WARMUP + 1))
    assert schedule(WARMUP) == pytest.approx(1e-3, rel=1e-3)
    assert schedule(setting.steps // 2 + WARMUP // 2) == pytest.approx(0.55e-3, rel=1e-2)
    assert schedule(setting.steps - 1) == pytest.approx(1e-4, rel=1e-2)


@pytest.mark.parametrize("method", ["cosine 0.001", "PaceLR", "Schedule-Free"])
def test_one_run_serves_both_protocols(method: str) -> None:
    found = nanogpt.run(("cpu", method, 0), CPU)["protocols"]
    assert set(found) == {"public", "halves"}
    for row in found.values():
        assert row["step"] in range(10, 61, 10)
        assert row["value"] < 4.3  # log of 65 characters is 4.17
        assert row["cost"] == 1.0


@pytest.mark.parametrize("protocol", ["public", "halves"])
def test_a_study_reports_its_best_moment_and_what_was_paid(protocol: str) -> None:
    row = nanogpt.run((f"cpu, {protocol}", "tune 1", 0), CPU)
    assert row["chosen"] <= row["last"]
    assert row["cost"] <= 1.1
    assert row["value"] == pytest.approx(row["chosen"], rel=0.05)


def test_bounds_are_four_decades_that_differ_between_seeds() -> None:
    bounds = np.array([nanogpt.bounds(seed) for seed in range(3)])
    assert bounds[:, 1] / bounds[:, 0] == pytest.approx(1e4)
    assert len(set(bounds[:, 0])) == 3


def test_rows_of_single_runs_count_for_both_protocols() -> None:
    row = {"protocols": {"public": {"value": 1.0}, "halves": {"value": 2.0}}}
    found = nanogpt.by_protocol({("gpu", "PaceLR", 0): row, ("gpu, public", "tune 1", 0): {"value": 3.0}})
    assert {key: row["value"] for key, row in found.items()} == {
        ("gpu, public", "PaceLR", 0): 1.0,
        ("gpu, halves", "PaceLR", 0): 2.0,
        ("gpu, public", "tune 1", 0): 3.0,
    }


def test_no_run_is_wanted_twice() -> None:
    keys = nanogpt.wanted("gpu", list(nanogpt.PROTOCOLS), [0, 1, 2])
    assert len(keys) == len(set(keys))
    assert ("gpu, halves", "tune 2.3", 1) in keys
    assert not any("to the end" in method for _, method, _ in nanogpt.wanted("cpu", ["public"], [0]))
