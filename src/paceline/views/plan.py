"""A plan of the next run as plain named tuples, which the page, the JSON output and the figure show.

A forecast and a record never share a type: a schedule that was never run has a forecast, and a run has a value.
"""

from typing import Any, NamedTuple

from paceline.traces import Schedule


class RunLine(NamedTuple):
    """The values and rates of a recorded run; of a fork only the part after its parent."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    rate_steps: tuple[int, ...]
    rates: tuple[float, ...]


class EndForecast(NamedTuple):
    """The forecast of a schedule's final value: its median and its 90 % band."""

    name: str
    peak: float
    median: float
    low: float
    high: float


class RunEnd(NamedTuple):
    """The final value of a recorded run."""

    name: str
    step: int
    value: float
    description: str


class ForecastCurve(NamedTuple):
    """The forecast of a whole run: its median and its 90 % band at some steps."""

    steps: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    median: tuple[float, ...]


class PlanView(NamedTuple):
    """A plan and what it was made from.

    `usual` holds the usual schedules, each at the peak with the best forecast, the best schedule first. `recorded`
    holds the final value of the best run of each source. `best` is the best recorded run from its start.
    """

    sources: tuple[str, ...]
    observations: int
    failed: int
    steps: int
    lr: tuple[float, float]
    mode: str
    family: str
    quantile: float
    caveats: tuple[str, ...]
    schedule: Schedule
    plan: EndForecast
    usual: tuple[EndForecast, ...]
    recorded: tuple[RunEnd, ...]
    forecast: ForecastCurve
    runs: tuple[RunLine, ...]
    best: RunLine | None


def plan_json(view: PlanView) -> dict[str, Any]:
    """The plan as plain data, for scripts. Recorded runs are counted, not copied: the sources hold them."""
    data = view._asdict()
    del data["best"]
    return {
        **data,
        "runs": len(view.runs),
        "schedule": view.schedule.to_json(),
        "plan": view.plan._asdict(),
        "usual": [forecast._asdict() for forecast in view.usual],
        "recorded": [end._asdict() for end in view.recorded],
        "forecast": view.forecast._asdict(),
    }
