"""Small studies for the tests of the page, written by the journal's own code."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.study import (
    Created,
    Decided,
    Dropped,
    Event,
    Finished,
    Interval,
    Journal,
    Report,
    because,
    read_journal,
    write_settings,
)
from paceline.traces import Schedule

STRATEGY = {"strategy": "dynamic", "weights": "averaged", "base": {"name": "linear"}}
SETTINGS = {"lr": [0.001, 1.0], "steps": 100, "mode": "min", "total_steps": 180, "seed": 4, "strategy": STRATEGY}
FIRST, OTHER = Schedule([0.1], [0, 20], 100, "linear"), Schedule([0.01], [0, 20], 100, "linear")
FORECAST = [{"fork": 2, "steps": [60, 100], "low": [0.4, 0.2], "median": [0.5, 0.3], "high": [0.6, 0.4]}]
WHY = because("best quantile", alpha=0.5, step=100, value=0.3, candidates=41)
CLONE = because("clone", fork=2, parent=0, rate=0.05, why=WHY)
RANKING = [{"fork": 0, "value": 1.6}, {"fork": 1, "value": 1.8}]

EVENTS: list[Event] = [
    Created(SETTINGS),
    Decided(1, 0, (because("start", rates=[0.1, 0.01]),), {}, 0.001),
    Interval(0, None, 0, 20, FIRST, 1),
    Interval(1, None, 0, 20, OTHER, 1),
    Report(0, 0, 20, (10, 20), {"raw": (2.0, 1.5), "averaged": (2.2, 1.6)}),
    Report(1, 0, 20, (10, 20), {"raw": (2.0, 1.2), "averaged": (2.4, 1.8)}),
    Decided(
        2, 20, (because("ranking", step=20, ranking=RANKING), CLONE), {"ranking": RANKING, "forecast": FORECAST}, 0.1
    ),
    Dropped(1, 20, because("behind", value=1.8)),
    Interval(0, None, 20, 100, FIRST.extend(0.1, 100), 2),
    Interval(2, 0, 20, 100, FIRST.extend(0.05, 100), 2),
    Report(0, 20, 100, (60, 100), {"raw": (1.1, 0.7), "averaged": (1.0, 0.65)}),
    Report(2, 20, 100, (60, 100), {"raw": (0.9, 0.5), "averaged": (0.8, 0.45)}),
    Decided(3, 100, (because("ended best", fork=2, value=0.45),), {}, 0.0),
    Finished(2, 100, 0.45, "averaged"),
]


def write(folder: Path, events: Sequence[Event] = EVENTS) -> Path:
    """A study folder with these events."""
    write_settings(folder, SETTINGS, 4)
    append(folder, events)
    return folder


def append(folder: Path, events: Iterable[Event]) -> None:
    """More events, as a study that runs would write them."""
    with Journal(folder) as journal:
        for event in events:
            journal.append(event)


def family(name: str) -> list[Event]:
    """The family of the golden journal with its first task named so."""
    created, *rest = read_journal(Path(__file__).parents[2] / "golden" / "journal-1-family.jsonl")
    assert isinstance(created, Created)
    tasks = [name, *created.settings["tasks"][1:]]
    return [replace(created, settings={**created.settings, "tasks": tasks}), *rest]
