"""When every living fork fails, the study goes back and goes on at a lower rate, within its total of steps."""

import shutil
from pathlib import Path

import pytest

from paceline.errors import TrainingError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import Dynamic
from paceline.study import Decided, Event, Interval, Reason, Report, read_journal
from paceline.tuner import Tuner, tune
from tests.tuner.toy_study import Interrupt, facts, loss, make


def fails(interval: Interval, cliff: int, limit: float) -> bool:
    """A cliff: above a rate, whatever passes this step diverges."""
    return interval.start <= cliff < interval.stop and interval.multiplier > limit


def drive(tuner: Tuner, cliff: int, limit: float, most: int = 10**6) -> Tuner:
    """Report on intervals; those that go over the cliff fail ten steps after their start."""
    while (intervals := tuner.ask()) is not None and most > 0:
        for interval in intervals[:most]:
            most -= 1
            steps, values = loss(interval)
            if fails(interval, cliff, limit):
                steps = [s for s in steps if s <= interval.start + 10]
                tuner.fail(interval, "diverged", steps, {name: v[: len(steps)] for name, v in values.items()})
            else:
                tuner.tell(interval, steps, values)
    return tuner


def steps_of(events: list[Event]) -> int:
    """Steps that all forks trained."""
    return sum(e.stop - e.start if e.failure is None else 10 for e in events if isinstance(e, Report))


def last_reason(tuner: Tuner) -> Reason:
    """Why the study is over."""
    return tuner.study.decisions[-1].reasons[0]


@pytest.mark.parametrize("name", ["horizon", "horizon-5", "greedy-1", "keep-each"])
def test_it_goes_back_to_where_the_best_fork_began_and_goes_on_lower(name: str) -> None:
    events: list[Event] = []
    tuner = drive(make(name, on_event=events.append), 250, 2e-3)
    back = [e for e in events if isinstance(e, Decided) and e.reasons[0].kind == "go back"]
    assert 1 <= len(back) <= 3
    again = next(e for e in events if isinstance(e, Interval) and e.round == back[0].round)
    before = [e for e in events if isinstance(e, Interval) and e.round < again.round]
    from_there = {e.fork for e in before if e.origin == again.origin}
    lowest = min(f.multiplier for f in tuner.history.forks if f.id in from_there)
    assert again.schedule.multipliers[-1] <= lowest
    assert steps_of(events) <= tuner.total_steps
    for decided in (e for e in events if isinstance(e, Decided)):
        proposed = {e.fork for e in events if isinstance(e, Interval) and e.round == decided.round}
        assert {band["fork"] for band in decided.details.get("forecast", [])} <= proposed
    if tuner.result.fork is None:
        reason = last_reason(tuner)
        assert (reason.kind, reason["tries"]) == ("all failed", len(back))
        assert reason["best_state"]["step"] == again.start
    else:
        assert tuner.result.schedule is not None
        assert tuner.result.schedule(250) <= 2e-3
        assert int(tuner.result.schedule.change_points[-1]) == 400


def test_a_single_run_goes_back_to_its_start_too() -> None:
    events: list[Event] = []
    tuner = Tuner(lr=(1e-4, 1e-1), steps=400, strategy=Dynamic.horizon(forks=1), on_event=events.append)
    drive(tuner, 0, 1e-3)
    assert tuner.result.schedule is not None
    assert float(tuner.result.schedule.multipliers[0]) <= 1e-3
    assert steps_of(events) <= tuner.total_steps


def test_it_gives_up_when_nothing_helps_and_stays_within_its_total() -> None:
    for name in ("horizon", "greedy", "greedy-1"):
        events: list[Event] = []
        tuner = drive(make(name, on_event=events.append), 250, 0.0)
        assert tuner.result.fork is None
        reason = last_reason(tuner)
        assert reason.kind == "all failed"
        assert reason["tries"] > 0
        assert tuner.history.fork(reason["best_state"]["fork"]).trace is not None
        assert steps_of(events) <= tuner.total_steps


@pytest.mark.parametrize("cost", [1.5, 2.3, 5.0])
@pytest.mark.parametrize("cliff", [15, 130, 390])
def test_it_stays_within_its_total_wherever_forks_fail(cost: float, cliff: int) -> None:
    events: list[Event] = []
    tuner = Tuner(lr=(1e-4, 1e-1), steps=400, strategy=Dynamic.horizon(cost=cost), on_event=events.append)
    drive(tuner, cliff, 3e-3)
    assert steps_of(events) <= tuner.total_steps <= cost * 400
    assert tuner.result.fork is not None or last_reason(tuner).kind == "all failed"


def test_cut_after_any_line_it_goes_back_the_same_way(tmp_path: Path) -> None:
    drive(make("horizon", study=tmp_path / "whole"), 250, 2e-3).close()
    whole = facts(tmp_path / "whole")
    lines = (tmp_path / "whole" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if b'"failed"' in line)
    for cut in range(first, len(lines)):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        shutil.copy(tmp_path / "whole" / "study.json", folder)
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:cut]))
        drive(make("horizon", study=folder), 250, 2e-3).close()
        assert facts(folder) == whole, cut


class Cliff(QuadraticTraining):
    """A quadratic whose loss is NaN from a step on if the rate is too high there."""

    def __init__(self, cliff: int = 210, limit: float = 0.1) -> None:
        super().__init__(Quadratic(), every=5)
        self.cliff, self.limit = cliff, limit

    def advance(self, schedule, stop):
        for step, values in super().advance(schedule, stop):
            over = step > self.cliff and schedule.multiplier(self.cliff) > self.limit
            yield step, dict.fromkeys(values, float("nan")) if over else values


def test_killed_anywhere_around_it_the_state_to_go_back_to_is_there_and_disk_stays_bounded(tmp_path: Path) -> None:
    settings = {"steps": 400, "lr": (1e-3, 1.0), "cost": 2.3}
    events: list[Event] = []
    whole = tune(Cliff, study=tmp_path / "whole", on_event=events.append, **settings)
    first = next(i for i, e in enumerate(events) if isinstance(e, Report) and e.failure)
    assert any(e.reasons[0].kind == "go back" for e in events if isinstance(e, Decided))
    assert any(isinstance(e, Interval) and e.parent is not None for e in events[first:])
    for limit in range(first, min(first + 12, len(events)), 3):
        folder, most = tmp_path / str(limit), 0

        def hook(event: Event, seen: list[Event], last: int = limit, folder: Path = folder) -> None:
            nonlocal most
            seen.append(event)
            most = max(most, len(list((folder / "checkpoints").glob("*.pt"))))
            if len(seen) == last:
                raise Interrupt

        seen: list[Event] = []
        with pytest.raises(Interrupt):
            tune(Cliff, study=folder, on_event=lambda e, seen=seen: hook(e, seen), **settings)
        again: list[Event] = []
        result = tune(Cliff, study=folder, on_event=lambda e, seen=again: hook(e, seen, 10**9), **settings)
        assert facts(folder) == facts(tmp_path / "whole")
        assert bool((result.weights()["theta"] == whole.weights()["theta"]).all())
        assert most <= 8 + 1


def test_a_study_that_gives_up_keeps_its_best_state_and_names_it(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="every fork failed, even after going back") as error:
        tune(lambda: Cliff(limit=0.0), study=tmp_path, steps=400, lr=(1e-3, 1.0), cost=2.3)
    assert str(tmp_path) in str(error.value)
    last = next(e for e in reversed(read_journal(tmp_path / "journal.jsonl")) if isinstance(e, Decided))
    best = last.reasons[0]["best_state"]
    assert (tmp_path / "checkpoints" / f"{best['fork']}-{best['step']}.pt").exists()


@pytest.mark.parametrize("seed", [0, pytest.param(4, marks=pytest.mark.slow)])
def test_greedy_goes_back_from_values_that_are_finite_and_absurd(seed: int) -> None:
    """On a quadratic with little noise every fork diverges after the values have become tiny."""
    result = tune(
        lambda: QuadraticTraining(Quadratic(0.05, dims=20), seed),
        steps=400,
        lr=(0.01, 8.0),
        strategy=Dynamic.greedy(in_sequence=False, min_separation=0.0, alphas=(0.1, 0.3, 0.5, 0.7, 0.9)),  # as in 0.1.0
        seed=seed,
    )
    assert result.study is not None
    assert "go back" in {reason.kind for decision in result.study.decisions for reason in decision.reasons}
    assert result.value is not None
    assert result.value < 1e-3
