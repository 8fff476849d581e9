"""The numbers of the demo, from made-up studies. tests/cli/test_demo.py runs it."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from paceline import Schedule, demo
from paceline.demo import TUNED, DemoStudy


@dataclass
class View:
    """As much of a `StudyView` as the summary reads."""

    forks: list[Any]
    best: Any = None
    decisions: list[int] = field(default_factory=lambda: [1, 2])
    done_steps: int = 100


def fork(state: str, raw: float, averaged: float) -> Any:
    schedule = Schedule.constant(0.1, 100)
    return SimpleNamespace(state=state, last_values={"raw": raw, "averaged": averaged}, schedule=schedule)


def study(name: str, *forks: Any) -> DemoStudy:
    seconds = {"training": 8.0, "decide": 0.5, "journal": 0.25, "checkpoint": 0.25}
    best = forks[0] if name == TUNED else None
    return DemoStudy(name, View(list(forks), best), seconds, 10.0)  # type: ignore[arg-type]


TUNED_STUDY = study(TUNED, fork("won", 0.5, 0.4), fork("dropped", 0.1, 0.1))
FIXED = [
    study("constant", fork("won", 1.0, 0.9), fork("ended", 2.0, 0.8), fork("failed", 0.0, 0.0)),
    study("cosine", fork("won", 1.25, 0.2)),
]


def test_a_tuned_run_counts_by_its_winner_and_fixed_schedules_by_their_best_whole_run() -> None:
    assert TUNED_STUDY.final_values == {"raw": 0.5, "averaged": 0.4}
    assert FIXED[0].final_values == {"raw": 1.0, "averaged": 0.8}


def test_the_summary_compares_with_the_best_fixed_schedule_by_weights() -> None:
    lines = demo._summary(TUNED_STUDY, FIXED)
    assert "raw weights: paceline ended 50 % below the best fixed schedule, constant" in lines
    assert "averaged weights: paceline ended 100 % above the best fixed schedule, cosine" in lines
    assert lines[-1].endswith("10.0 % of its run, 250 ms a decision (2 decisions)")


def test_without_plotly_there_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    assert demo._files(TUNED_STUDY, FIXED)[-1] == "figure: none, it needs pip install 'paceline[plot]'"


def test_one_thread_is_used_and_the_number_put_back() -> None:
    before = torch.get_num_threads()
    with demo._one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
