"""What every strategy has to do in the loop: the package's own, and those it is compared with."""

import json
import shutil
from pathlib import Path

from paceline.strategy import Strategy
from paceline.study import Decided, Finished, Interval
from tests.tuner.toy_study import drive, facts, loss, make


def check_end(strategy: str | Strategy) -> None:
    """A study ends within its cost, with a winner and a reason for each decision."""
    events = []
    tuner = drive(make(strategy, on_event=events.append))
    spent = sum(e.stop - e.start for e in events if isinstance(e, Interval))
    assert spent <= tuner.total_steps
    result = tuner.result
    assert result.schedule is not None
    assert result.schedule.steps == 400
    assert isinstance(events[-1], Finished)
    assert result.value is not None
    assert result.value < 2.0
    decisions = [e for e in events if isinstance(e, Decided)]
    assert all(d.reasons for d in decisions)


def check_order(strategy: str | Strategy) -> None:
    """Reports in another order give the same decisions."""

    def run(reverse: bool) -> list[dict]:
        tuner = make(strategy)
        while (intervals := tuner.ask()) is not None:
            for p in reversed(intervals) if reverse else intervals:
                tuner.tell(p, *loss(p))
        return [fork.schedule.to_json() for fork in tuner.history.forks]

    assert run(reverse=False) == run(reverse=True)


def check_interruptions(strategy: str | Strategy, tmp_path: Path, every: int = 1) -> None:
    """A study whose journal ends anywhere, in the middle of a line too, goes on with the same decisions.

    Args:
        strategy: what is tried.
        tmp_path: an empty folder.
        every: try each so many places only; strategies with a model are slow.
    """
    drive(make(strategy, study=tmp_path / "whole")).close()
    whole = facts(tmp_path / "whole")
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for cut in cuts(lines)[::every]:
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "study.json", folder)
        torn = lines[cut][: len(lines[cut]) // 2]
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]) + torn)
        drive(make(strategy, study=folder)).close()
        assert facts(folder) == whole, cut


def cuts(lines: list[bytes]) -> list[int]:
    """Every line but those in the midst of lines of their kind, where a study stands as it does one line further."""
    kinds = [json.loads(line)["event"] for line in lines]
    return [i for i in range(1, len(lines)) if len(set(kinds[i - 1 : i + 2])) > 1]


def check_advice(strategy: str | Strategy) -> None:
    """A study all of whose forks fail ends without a schedule, and says what to do."""
    tuner = make(strategy)
    while (intervals := tuner.ask()) is not None:
        for p in intervals:
            tuner.fail(p, "out of memory")
    assert tuner.result.schedule is None
    assert "every" in tuner.result.advice
