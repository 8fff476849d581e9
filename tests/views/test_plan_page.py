"""A plan as text."""

import io

import pytest
from rich.console import Console

from paceline.shapes import WarmupStableDecay
from paceline.traces import Schedule
from paceline.views.plan import PlanView
from paceline.views.plan_page import describe_plan, describe_schedule
from tests.views.plans import SCHEDULE, VIEW


def page(view: PlanView) -> str:
    file = io.StringIO()
    Console(file=file, width=200, highlight=False, markup=False).print(describe_plan(view))
    return file.getvalue()


def test_a_page_keeps_forecasts_and_records_apart() -> None:
    text = page(VIEW)
    for part in (
        "learnt from 2 runs, 1 of them failed, 1,234 observations: runs/first (9 forks), old.csv (1 run)",
        "caveat: all runs had the same rate",
        "plan for a run of 1,000 steps",
        "rates from 0.0001 to 0.012 were searched for the best median of the final value",
        "None of these schedules was run.",
        "the forecast of the plan is 20 % better than that of the best usual schedule, cosine\n",
        "recorded: old.csv ended at 0.52, step 1,000 (mean of the last 5 values)",
    ):
        assert part in text, text
    assert text.index("the plan ") < text.index("cosine") < text.index("constant")
    assert "the best 0.2-quantile (lower is more careful)" in page(VIEW._replace(quantile=0.2))


@pytest.mark.parametrize(
    ("median", "mode", "sentence"),
    [
        (0.47, "min", "6 % better than that of the best usual schedule, cosine. This is less than the band is wide"),
        (0.495, "min", "the forecasts of the plan and of the best usual schedule, cosine, are equal"),
        (0.6, "min", "cosine has a better forecast than the plan: run that one"),
        (0.6, "max", "20 % better than that of the best"),
        (-0.1, "min", "0.6 better than that of the best"),
    ],
)
def test_the_plan_against_the_best_usual_schedule(median: float, mode: str, sentence: str) -> None:
    plan = VIEW.plan._replace(median=median, low=median - 0.05, high=median + 0.05)
    assert sentence in page(VIEW._replace(plan=plan, mode=mode))


def test_a_schedule_with_its_phases() -> None:
    assert describe_schedule(SCHEDULE) == (
        "peak rate 0.012: warm-up over 20 steps (2 %), hold to step 700, decay to zero over the last 300 (30 %) "
        "with power 1.5"
    )
    straight = Schedule([0.1, 0.05], [0, 5, 10], base=WarmupStableDecay(warmup=0.0, decay=1.0))
    assert describe_schedule(straight) == (
        "peak rate 0.1 until step 5, 0.05 to the end, times a warmup-stable-decay base: warm-up over 1 step (0 %), "
        "decay to zero over the last 10 (100 %) in a straight line"
    )
    free = Schedule([0.1, 0.05], [0, 50, 100], base=WarmupStableDecay(warmup=0.1, decay=0.0))
    assert describe_schedule(free) == "rate 0.1 until step 50, 0.05 to the end, after a warm-up over 10 steps (10 %)"
    assert describe_schedule(Schedule.constant(0.1, 10)) == "rate 0.1 to the end"
