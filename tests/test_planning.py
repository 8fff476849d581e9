"""From logs to a plan. tests/cli/test_plan_command.py has the command."""

from pathlib import Path

import pytest

from paceline.planning import plan_from
from paceline.problems import Quadratic, QuadraticTraining
from paceline.shapes import WarmupStableDecay
from paceline.study import Study
from paceline.tuner import tune
from paceline.views.plan import PlanView
from tests.recorded_runs import COSINES, STEPS, losses, write_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("logs") / "old.csv")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    tune(lambda: QuadraticTraining(Quadratic(dims=20), seed=3), steps=200, lr=(0.01, 4.0), cost=1.5, study=folder)
    return folder


@pytest.fixture(scope="module")
def view(table: Path) -> PlanView:
    return plan_from([table])


def test_a_table_is_enough_for_a_plan(table: Path, view: PlanView) -> None:
    assert view.sources == (f"{table} (2 runs)",)
    assert (view.observations, view.failed, view.steps) == (80, 0, 400)
    assert view.lr == pytest.approx((0.001, 0.1), rel=0.01)
    assert view.plan.low < view.plan.median < view.plan.high
    assert view.plan.median <= view.usual[0].median + 0.01
    assert {outlook.name for outlook in view.usual} == {
        "constant",
        "linear",
        "cosine",
        "one-cycle",
        "warm-up-stable-decay",
    }
    assert [o.median for o in view.usual] == sorted(o.median for o in view.usual)
    cosine = next(outlook for outlook in view.usual if outlook.name == "cosine")
    assert cosine.low < losses(COSINES[1])[-1] < cosine.high  # it was run: the law must know
    assert view.recorded[0].value == pytest.approx(losses(COSINES[1])[STEPS[-5:] - 1].mean())
    assert view.best is not None
    assert view.best.rates[0] == pytest.approx(0.1, rel=0.01)
    assert view.forecast.steps[-1] == 400


def test_a_study_is_enough_for_a_plan(study: Path) -> None:
    view = plan_from([study])
    finished = Study.open(study).finished
    assert finished is not None
    assert view.recorded[0].description == (
        f"fork {finished.fork}, the winner, raw weights, mean of the last 5 values; "
        f"its schedule: paceline export {study}"
    )
    assert view.steps == 200
    assert view.lr[0] == 0.01
    assert isinstance(view.schedule.base, WarmupStableDecay)
    assert view.schedule.base.warmup > 0.01  # as all forks had
    assert any("every run near the highest rate warmed up" in caveat for caveat in view.caveats)
    winner = [p.schedule for p in Study.open(study).intervals if p.fork == finished.fork][-1]
    assert view.schedule.multipliers.max() <= 1.001 * winner.multipliers.max()


def test_what_a_plan_goes_beyond_is_said(table: Path) -> None:
    view = plan_from([table], steps=2000, lr=(1e-3, 0.02), family="free", quantile=0.3)
    assert view.schedule.steps == 2000
    assert view.schedule.multipliers.max() == pytest.approx(0.02)
    text = " ".join(view.caveats)
    assert "no run was longer than 400 steps: what comes after is extrapolated" in text
    assert "is the highest in the search" in text


def test_a_run_that_failed_lowers_the_bound(table: Path, tmp_path: Path) -> None:
    (tmp_path / "high.csv").write_text("step,lr,loss\n10,3,2\n20,3,50\n30,3,nan\n")
    view = plan_from([table, tmp_path / "high.csv"])
    assert view.failed == 1
    assert view.lr[1] == pytest.approx(0.1, rel=0.01)
    (tmp_path / "bad.csv").write_text("\n".join(["step,lr,loss", *(f"{s},3,{s}" for s in range(1, 12)), "12,3,inf"]))
    bad = plan_from([tmp_path / "bad.csv"])
    assert bad.schedule.multipliers.max() <= 0.3
    assert bad.recorded == ()
    assert bad.best is None
