"""A plan in words and as a picture."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from paceline.errors import InputError
from paceline.shapes import WarmupStableDecay
from paceline.traces import Schedule
from paceline.views import planned
from paceline.views.planned import (
    ExpectedEnd,
    PlanView,
    Reached,
    RunLine,
    check_picture,
    draw_plan,
    plan_json,
    plan_page,
    planned_in_words,
)

SCHEDULE = Schedule.of(WarmupStableDecay(warmup=0.02, decay=0.3, power=1.5), 0.012, 1000)
RUN = RunLine("old.csv", (10, 500, 1000), (2.0, 0.9, 0.5), (0, 500, 999), (0.01, 0.005, 1e-5))
VIEW = PlanView(
    sources=("runs/first (9 forks)", "old.csv (1 run)"),
    observations=1234,
    failed=1,
    steps=1000,
    lr=(1e-4, 0.012),
    mode="min",
    family="shape",
    quantile=0.5,
    caveats=("all runs had the same rate",),
    schedule=SCHEDULE,
    plan=ExpectedEnd("the plan", 0.012, 0.4, 0.35, 0.45),
    usual=(ExpectedEnd("cosine", 0.01, 0.5, 0.45, 0.55), ExpectedEnd("constant", 0.003, 0.9, 0.8, 1.0)),
    reached=(Reached("old.csv", 1000, 0.52, "mean of the last 5 values"),),
    curve=((10.0, 500.0, 1000.0), (1.8, 0.8, 0.35), (2.2, 1.0, 0.45), (2.0, 0.9, 0.4)),
    runs=(RUN, RUN._replace(steps=(), values=(), rate_steps=(), rates=())),
    best=RUN,
)


def page(view: PlanView) -> str:
    file = io.StringIO()
    Console(file=file, width=160, highlight=False, markup=False).print(plan_page(view))
    return file.getvalue()


def test_a_page_tells_forecasts_from_records() -> None:
    text = page(VIEW)
    for part in (
        "learnt from 2 runs, 1 of them failed, 1,234 observations: runs/first (9 forks), old.csv (1 run)",
        "caveat: all runs had the same rate",
        "plan for a run of 1,000 steps",
        "looked for between 0.0001 and 0.012, by the median of the final value",
        "none of these schedules was run",
        "the plan is forecast to end 20 % better than the best of the usual ones, cosine\n",
        "recorded: old.csv ended at 0.52, step 1,000 (mean of the last 5 values)",
    ):
        assert part in text, text
    assert text.index("the plan ") < text.index("cosine") < text.index("constant")
    assert "the 0.2-quantile (lower is more careful)" in page(VIEW._replace(quantile=0.2))


@pytest.mark.parametrize(
    ("median", "mode", "words"),
    [
        (0.47, "min", "6 % better than the best of the usual ones, cosine: less than the band is wide"),
        (0.495, "min", "the plan and the best of the usual ones, cosine, are forecast to end alike"),
        (0.6, "min", "cosine is forecast to end better than the plan: run that one"),
        (0.6, "max", "20 % better than the best"),
        (-0.1, "min", "0.6 better than the best"),
    ],
)
def test_the_comparison(median: float, mode: str, words: str) -> None:
    plan = VIEW.plan._replace(median=median, low=median - 0.05, high=median + 0.05)
    assert words in page(VIEW._replace(plan=plan, mode=mode))


def test_schedules_with_their_shape_in_words() -> None:
    assert planned_in_words(SCHEDULE) == (
        "peak rate 0.012: warm-up over 20 steps (2 %), hold to step 700, decay to zero over the last 300 (30 %) "
        "with power 1.5"
    )
    straight = Schedule([0.1, 0.05], [0, 5, 10], base=WarmupStableDecay(warmup=0.0, decay=1.0))
    assert planned_in_words(straight) == (
        "peak rate 0.1 until step 5, 0.05 to the end, times a warmup-stable-decay base: warm-up over 1 step (0 %), "
        "decay to zero over the last 10 (100 %) in a straight line"
    )
    free = Schedule([0.1, 0.05], [0, 50, 100], base=WarmupStableDecay(warmup=0.1, decay=0.0))
    assert planned_in_words(free) == "rate 0.1 until step 50, 0.05 to the end, after a warm-up over 10 steps (10 %)"
    assert planned_in_words(Schedule.constant(0.1, 10)) == "rate 0.1 to the end"


def test_scripts_get_the_same_as_plain_data() -> None:
    data = json.loads(json.dumps(plan_json(VIEW)))
    assert data["plan"]["median"] == 0.4
    assert data["forecast"]["high"] == [2.2, 1.0, 0.45]
    assert data["runs"] == 2
    assert Schedule.from_json(data["schedule"]) == SCHEDULE


@pytest.mark.parametrize("view", [VIEW, VIEW._replace(best=None), VIEW._replace(runs=(RUN,), steps=2000)])
def test_a_picture_is_drawn(view: PlanView, tmp_path: Path) -> None:
    draw_plan(view, tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_that_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    check_picture(Path("plan.PNG"))
    with pytest.raises(InputError, match=r"ends in .png, .pdf or .svg, got 'plan.doc': give it such a name"):
        check_picture(Path("plan.doc"))
    monkeypatch.setattr(planned, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="a figure needs matplotlib, which is not installed: pip install"):
        check_picture(Path("plan.png"))
