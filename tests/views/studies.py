"""Two small studies for the tests of views, and the golden journals, as events."""

import math
from dataclasses import replace
from pathlib import Path

from paceline.study import (
    Created,
    Decided,
    Dropped,
    Event,
    Failure,
    Finished,
    Interval,
    Report,
    as_reason,
    because,
    read_journal,
)
from paceline.traces import Schedule

GOLDEN = Path(__file__).parents[1] / "golden"

STRATEGY = {"strategy": "dynamic", "weights": "averaged", "base": {"name": "linear"}}
SETTINGS = {"lr": [0.001, 1.0], "steps": 100, "mode": "min", "total_steps": 180, "seed": 4, "strategy": STRATEGY}
FIRST, OTHER = Schedule([0.1], [0, 20], 100, "linear"), Schedule([0.01], [0, 20], 100, "linear")
FORECAST = [{"fork": 2, "steps": [60, 100], "low": [0.4, 0.2], "median": [0.5, 0.3], "high": [0.6, 0.4]}]
RANKING = [{"fork": 0, "value": 1.6}, {"fork": 1, "value": 1.8}]
WHY_RATE = because("best quantile", alpha=0.5, step=100, value=0.3, candidates=41)

_BEGIN: list[Event] = [
    Created(SETTINGS),
    Decided(1, 0, (because("start", rates=[0.1, 0.01]),), {}, 0.001),
    Interval(0, None, 0, 20, FIRST, 1),
    Interval(1, None, 0, 20, OTHER, 1),
    Report(0, 0, 20, (10, 20), {"raw": (2.0, 1.5), "averaged": (2.2, 1.6)}),
    Report(1, 0, 20, (10, 20), {"raw": (2.0, 1.2), "averaged": (2.4, 1.8)}),
    Decided(
        2,
        20,
        (because("ranking", step=20, ranking=RANKING), because("clone", fork=2, parent=0, rate=0.05, why=WHY_RATE)),
        {"ranking": RANKING, "forecast": FORECAST},
        0.1,
    ),
    Dropped(1, 20, because("behind", value=1.8)),
    Interval(2, 0, 20, 100, FIRST.extend(0.05, 100), 2),
    Interval(0, None, 20, 100, FIRST.extend(0.1, 100), 2),
    Report(2, 20, 100, (60, 100), {"raw": (0.9, 0.5), "averaged": (0.8, 0.45)}),
]
_END: list[Event] = [
    Decided(3, 100, (because("ended best", fork=2, value=0.45),), {}, 0.0),
    Finished(2, 100, 0.45, "averaged"),
]

EVENTS: list[Event] = [
    *_BEGIN,
    Report(0, 20, 100, (60, 100), {"raw": (1.1, 0.7), "averaged": (1.0, 0.65)}),
    *_END,
]
"""Fork 1 is dropped, fork 2 is a clone of fork 0 and wins."""

STUDY: list[Event] = [
    *_BEGIN,
    Report(0, 20, 60, (60,), {"raw": (math.nan,), "averaged": (0.9,)}, Failure("not finite", step=60)),
    *_END,
]
"""The same, but fork 0 fails at step 60."""

KEPT: list[Event] = [
    Created({**SETTINGS, "keep": "best", "early_stop": True}),
    *_BEGIN[1:4],
    Report(0, 0, 20, (10, 20), {"raw": (2.0, 1.5), "averaged": (2.2, 1.6)}, kept=20),
    Report(1, 0, 20, (10, 20), {"raw": (2.0, 1.2), "averaged": (2.4, 1.8)}, kept=20),
    *_BEGIN[6:10],
    Report(2, 20, 100, (60, 100), {"raw": (0.9, 1.5), "averaged": (0.8, 1.45)}, kept=60),
    Report(0, 20, 60, (60,), {"raw": (1.9,), "averaged": (1.8,)}, Failure("turned", "1.5", step=20)),
    Decided(3, 100, (because("turned", fork=2, step=60, value=0.8, saved=20),), {}, 0.0),
    Finished(2, 60, 0.8, "averaged", last=1.45),
]
"""The same, but the best moments are kept: fork 2 is best at step 60, and fork 0 turns."""


def golden(name: str) -> list[Event]:
    """The events of `tests/golden/NAME.jsonl`."""
    return read_journal(GOLDEN / f"{name}.jsonl")


def family(name: str) -> list[Event]:
    """The family of the golden journal, with this name for its first task."""
    created, *rest = golden("journal-1-family")
    assert isinstance(created, Created)
    tasks = [name, *created.settings["tasks"][1:]]
    return [replace(created, settings={**created.settings, "tasks": tasks}), *rest]


def with_text(events: list[Event], text: str) -> list[Event]:
    """The same study with this text as a setting, as every reason and as the message of every failure."""
    changed = list[Event]()
    for event in events:
        match event:
            case Created():
                changed.append(replace(event, settings={**event.settings, "note": text}))
            case Decided():
                changed.append(replace(event, reasons=(as_reason(text),)))
            case Dropped():
                changed.append(replace(event, reason=as_reason(text)))
            case Report() if event.failure is not None:
                changed.append(replace(event, failure=Failure("raised", text)))
            case _:
                changed.append(event)
    return changed
