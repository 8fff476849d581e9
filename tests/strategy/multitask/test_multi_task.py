"""Algorithm 2 as a journaled strategy, by hand: interrupted, with odd values, with too few observations."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from paceline import Objective, Tuner
from paceline.errors import InputError
from paceline.strategy import Dynamic, MultiTask
from paceline.study import Interval, Study
from tests.quick_families import BOUNDS, NOISES, STEPS, facts, quick_tuner, report, run_by_hand


def test_the_optimistic_set_can_be_run_itself() -> None:
    tuner = run_by_hand(quick_tuner(None, infill="optimistic", initial=3, budget=5, batch=2))
    tasks = {p.fork: list(NOISES)[p.task] for p in tuner.study.intervals}
    rows = [row for decision in tuner.study.decisions for row in decision.details.get("infill", [])]
    assert [row["rivals"] for row in rows] == [{tasks[row["fork"]]: row["after"]} for row in rows]
    assert len(rows) == 2
    assert list(tuner.study.answers) == list(NOISES)


def test_by_hand_without_a_folder_the_study_is_there_too() -> None:
    tuner = quick_tuner()
    with pytest.raises(InputError, match="needs both their names and a strategy for families, got no tasks"):
        Tuner(lr=BOUNDS, steps=STEPS, strategy=MultiTask())
    with pytest.raises(InputError, match="got 2 tasks and Dynamic"):
        Tuner(lr=BOUNDS, steps=STEPS, strategy=Dynamic.greedy(), tasks=["a", "b"])
    intervals = tuner.ask()
    assert intervals is not None
    assert {tuner.task_of(p) for p in intervals} < set(NOISES)
    for p in intervals:
        report(tuner, p)
    assert set(run_by_hand(tuner).study.answers) == set(NOISES)


def test_cut_after_any_line_a_family_goes_on_with_the_same_decisions(tmp_path: Path) -> None:
    quick = {"tasks": ["calm", "wild"], "initial": 2, "budget": 4, "intervals": 2}
    run_by_hand(quick_tuner(tmp_path / "whole", **quick)).close()
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(2, len(lines), 3):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "study.json", folder)
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        run_by_hand(quick_tuner(folder, **quick)).close()
        assert facts(folder) == facts(tmp_path / "whole"), cut


def test_values_that_are_not_positive_are_modelled_as_they_are() -> None:
    tuner = quick_tuner(tasks=["a"], initial=1, budget=2)
    while (intervals := tuner.ask()) is not None:
        for p in intervals:
            tuner.tell(p, list(range(5, 61, 5)), [-10.0 - 0.01 * step - p.schedule(30) for step in range(5, 61, 5)])
    assert tuner.study.answers["a"].median < 0


def test_runs_that_are_observed_too_rarely_stop_it_after_the_first_ones() -> None:
    tuner = quick_tuner()
    first, second = tuner.ask() or []
    tuner.tell(first, [10, 60], [2.0, 1.0])
    with pytest.raises(InputError, match=r"expected a value before step 20, .* the first at step 30: observe"):
        tuner.tell(second, [30, 60], [2.0, 1.0])


def diverges_above(tuner: Tuner, interval: Interval, limit: float) -> None:
    """Report a run that becomes large and stays finite in the first interval whose rate is above a limit."""
    steps = list(range(0, STEPS + 1, 5))
    rates = interval.schedule(np.array(steps))
    losses = 2.0 * 10.0 ** np.cumsum(np.where(rates > limit, 3.0, -0.05))
    tuner.tell(interval, steps, np.minimum(losses, 1e15).tolist())


@pytest.mark.parametrize("infill", ["variance", "optimistic"])
def test_designs_runs_and_answers_stay_below_rates_that_failed(infill: str) -> None:
    """All rates above 0.1 fail."""
    tuner = quick_tuner(infill=infill, initial=6, budget=9, batch=1)
    highest = list[float]()
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            highest.append(float(interval.schedule.multipliers.max()))
            diverges_above(tuner, interval, 0.1)
    failed = [fork.failure is not None and fork.failure.kind == "diverged" for fork in tuner.history.forks]
    assert failed == [rate > 0.1 for rate in highest]
    first = failed.index(True)
    assert max(highest[first + 1 :]) < min(rate for rate in highest[: first + 1] if rate > 0.1)
    for answer in tuner.study.answers.values():
        assert float(answer.schedule.multipliers.max()) < min(rate for rate in highest if rate > 0.1)


def test_the_logarithm_is_for_losses() -> None:
    strategy = MultiTask()
    assert strategy.objective(Objective("min")).transform == "log"
    assert strategy.objective(Objective("max")).transform == "identity"


ROWS = {
    "at": {"calm": {"rows": 1600}, "rough": {"rows": 400}, "wild": {"rows": 100}},
    "costs": {"calm": 1, "rough": 0.25, "wild": 0.0625},
    "wanted": ["calm"],
}


def test_a_budget_of_cost_is_spent_on_what_teaches_about_the_wanted_tasks() -> None:
    tuner = run_by_hand(quick_tuner(None, **ROWS, initial=None, budget=1.5, batch=1))
    names = list(NOISES)
    runs = [names[interval.task] for interval in tuner.study.intervals]
    spent = sum(ROWS["costs"][task] for task in runs)
    first = next(i for i, decision in enumerate(tuner.study.decisions) if decision.reasons[0].kind != "initial design")
    assert set(runs[:first]) <= {"rough", "wild"}  # the cheaper ones first
    assert sum(ROWS["costs"][task] for task in runs[:first]) <= 0.75
    assert 1.5 - 0.0625 < spent <= 1.5
    reasons = [reason for decision in tuner.study.decisions for reason in decision.reasons]
    costs = [(reason["task"], reason["cost"]) for reason in reasons if reason.kind == "informative run"]
    assert costs == [(task, ROWS["costs"][task]) for task in runs[first:]]
    assert len(runs) * STEPS <= tuner.total_steps
    assert set(tuner.study.answers) == set(NOISES)


def test_cut_after_any_line_a_family_with_costs_goes_on_with_the_same_decisions(tmp_path: Path) -> None:
    known = {"at": {"calm": {"rows": 400}, "rough": {"rows": 100}}, "costs": {"calm": 1, "rough": 0.25}}
    quick = {**known, "tasks": ["calm", "rough"], "initial": None, "budget": 1.5, "intervals": 2}
    run_by_hand(quick_tuner(tmp_path / "whole", **quick)).close()
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in range(6, len(lines), 6):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "study.json", folder)
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        run_by_hand(quick_tuner(folder, **quick)).close()
        assert facts(folder) == facts(tmp_path / "whole"), cut


def test_costs_that_are_all_the_same_change_no_decision(tmp_path: Path) -> None:
    for name, more in (("plain", {"budget": 5}), ("costs", {"budget": 2.5, "costs": dict.fromkeys(NOISES, 0.5)})):
        run_by_hand(quick_tuner(tmp_path / name, **more)).close()
    plain, costs = (
        [(interval.task, interval.schedule) for interval in Study.open(tmp_path / name).intervals]
        for name in ("plain", "costs")
    )
    assert plain == costs
