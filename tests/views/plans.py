"""A plan for the tests of its page, its JSON and its figure."""

from paceline.shapes import WarmupStableDecay
from paceline.traces import Schedule
from paceline.views.plan import EndForecast, ForecastCurve, PlanView, RunEnd, RunLine

SCHEDULE = Schedule.of(WarmupStableDecay(warmup=0.02, decay=0.3, power=1.5), 0.012, 1000)
RUN = RunLine("old.csv", (10, 500, 1000), (2.0, 0.9, 0.5), (0, 500, 999), (0.01, 0.005, 1e-5))
FAILED_RUN = RUN._replace(steps=(), values=(), rate_steps=(), rates=())
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
    plan=EndForecast("the plan", 0.012, 0.4, 0.35, 0.45),
    usual=(EndForecast("cosine", 0.01, 0.5, 0.45, 0.55), EndForecast("constant", 0.003, 0.9, 0.8, 1.0)),
    recorded=(RunEnd("old.csv", 1000, 0.52, "mean of the last 5 values"),),
    forecast=ForecastCurve((10.0, 500.0, 1000.0), (1.8, 0.8, 0.35), (2.2, 1.0, 0.45), (2.0, 0.9, 0.4)),
    runs=(RUN, FAILED_RUN),
    best=RUN,
)
