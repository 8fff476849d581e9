"""The strategy for a new task, by hand: its decisions, failures and limits."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from paceline import Trace, Tuner
from paceline.errors import InputError
from paceline.settings import NewTaskSettings, SearchBudget
from paceline.strategy.newtask.new_task import MIN_RATE_GAP, distinct_rate
from paceline.study import Decided, Dropped, Interval
from tests.strategy.newtask.example_family import SMALL, SPACE, THOROUGH, NewTaskExample, run_new_task


def facts(tuner: Tuner) -> list[str]:
    """What was decided, without how long it took."""
    kept = [e for e in tuner.study.events if isinstance(e, Interval | Decided | Dropped)]
    return [repr(replace(e, seconds=0.0) if isinstance(e, Decided) else e) for e in kept]


def test_with_one_location_the_posterior_is_the_point(new: NewTaskExample) -> None:
    """One location of weight one: nothing to integrate over, and as many draws in all."""
    one = NewTaskSettings(locations=1, models=1, search=SearchBudget(draws=8, grid=3, sweeps=1, gradient_steps=2))
    posterior, point = (
        facts(run_new_task(new.strategy(one, location=location), most=0)) for location in ("posterior", "point")
    )
    assert posterior == point != []


def test_decisions_are_a_function_of_the_history(new: NewTaskExample, forked: Tuner, tmp_path: Path) -> None:
    """Interrupted in the middle, and continued by another process."""
    shutil.copytree(forked.study.path, tmp_path / "cut")
    lines = (tmp_path / "cut" / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut" / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]) + b'{"v"')
    again = run_new_task(new.strategy(forks=2), tmp_path / "cut")
    again.close()
    assert facts(again) == facts(forked)
    assert again.result.value == forked.result.value


def test_a_universal_plan_never_changes(new: NewTaskExample) -> None:
    tuner = run_new_task(new.strategy(method="universal"))
    plans = [decision.reasons[1] for decision in tuner.study.decisions[:-1]]
    assert plans[0]["rates"][1:] == plans[1]["rates"]
    assert plans[1]["rates"][1:] == plans[2]["rates"]
    assert len({(plan["alpha"], plan["value"]) for plan in plans}) == 1
    assert [plan["rate"] for plan in plans] == pytest.approx(plans[0]["rates"])
    assert tuner.study.decisions[-1].reasons[-1].kind == "location"
    assert tuner.result.schedule is not None
    other = run_new_task(new.strategy(method="universal"), best=0.2, most=2).history.fork(0).schedule
    assert other == tuner.result.schedule  # whatever the task turns out to be


@pytest.mark.parametrize("method", ["dynamic", "universal"])
def test_what_failed_is_not_tried_again(new: NewTaskExample, method: str) -> None:
    """The rate planned for the second interval fails, and all above a little less."""
    strategy = new.strategy(method=method)
    planned = float(run_new_task(strategy, most=1).history.fork(0).schedule.multipliers[1])
    tuner = run_new_task(strategy, cliff=0.7 * planned)
    second = [each for each in tuner.study.intervals if each.start == 20]
    failed, again = (each.schedule.multipliers[-1] for each in second)
    assert failed == planned
    assert again == pytest.approx(failed / 10**0.3)
    (last,) = (each for each in tuner.study.intervals if each.start == 40)
    assert last.schedule.multipliers[-1] < failed
    assert tuner.result.fork is not None


def until_it_fails(trace: Trace, highest: float) -> Trace:
    """The run up to the end of the first interval whose rate lies above a limit."""
    above = np.flatnonzero(SPACE.x_of(trace.schedule) > highest)
    return replace(trace.head(5 * int(above[0]) + 6), failed=True) if len(above) else trace


def test_a_plan_stays_below_rates_at_which_the_family_failed(new: NewTaskExample) -> None:
    known = tuple(until_it_fails(trace, 0.6) for trace in new.known_runs)
    for method, probe in (("universal", 0), ("probe", 1), ("dynamic", 0)):
        free = new.strategy(THOROUGH, method=method, probe=probe)
        limited = run_new_task(replace(free, known_runs=known)).result.schedule
        assert limited is not None
        assert max(SPACE.x_of(limited)) < 0.7
    unlimited = run_new_task(free).result.schedule
    assert unlimited is not None
    assert max(SPACE.x_of(unlimited)) > 0.7


def test_a_probe_takes_whole_intervals_then_the_plan_stands(new: NewTaskExample) -> None:
    assert [new.strategy(probe=steps).probe_intervals for steps in (0, 1, 20, 21, 40)] == [0, 1, 1, 2, 2]
    tuner = run_new_task(new.strategy(method="probe", probe=1))
    first, second, third, _ = tuner.study.decisions
    (probe,) = first.reasons
    assert probe.kind == "probe"
    assert len(probe["rates"]) == 1
    assert 0 <= probe["share"] <= 1
    assert second.reasons[1]["rates"][1:] == third.reasons[1]["rates"]


def test_forks_are_cloned_from_the_best_and_the_others_dropped(forked: Tuner) -> None:
    tuner, events = forked, forked.study.events
    proposed = [e for e in events if isinstance(e, Interval)]
    assert len(proposed) == 6
    assert sum(p.parent is not None for p in proposed) == 2
    dropped = [e for e in events if isinstance(e, Dropped)]
    assert len(dropped) >= 2
    assert any(e.reason.kind == "expected to end worse" for e in dropped)
    assert sum(p.stop - p.start for p in proposed) == tuner.total_steps == 120
    last = [f for f in tuner.history.forks if f.schedule.change_points[-1] == 60]
    assert tuner.result.fork == min(last, key=lambda fork: fork.final_value).id


def test_one_fork_probes_for_all(new: NewTaskExample) -> None:
    tuner = run_new_task(new.strategy(forks=2, probe=40))
    rounds = [sum(isinstance(e, Interval) and e.round == r for e in tuner.study.events) for r in (1, 2, 3)]
    assert rounds == [1, 1, 2]
    assert tuner.study.decisions[0].reasons == tuner.study.decisions[1].reasons
    assert all(int(f.schedule.change_points[-1]) == 60 for f in tuner.history.forks)


def test_a_run_that_fails_goes_back_and_runs_lower(new: NewTaskExample) -> None:
    quick = replace(SMALL, locations=3, models=1)
    # the second interval is proposed, and not run yet
    planned = run_new_task(new.strategy(quick), most=1).history.fork(0).schedule.multipliers
    assert len(planned) == 2
    tuner = run_new_task(new.strategy(quick), cliff=0.7 * float(planned[1]))
    events = tuner.study.events
    assert sum(report.failure is not None for report in tuner.study.reports) == 1
    (back,) = [r for decision in tuner.study.decisions for r in decision.reasons if r.kind == "go back"]
    assert (back["fork"], back["step"]) == (1, 20)
    assert tuner.result.schedule is not None
    assert tuner.result.schedule(30) < 0.7 * float(planned[1])
    assert int(tuner.result.schedule.change_points[-1]) == 60
    assert sum(p.stop - p.start for p in events if isinstance(p, Interval)) <= tuner.total_steps == 80


# limits


def test_a_probe_leaves_intervals_to_use_what_it_shows(new: NewTaskExample) -> None:
    with pytest.raises(InputError, match="a probe takes 0 to 2 of the 3 intervals, got 41 steps: leave some intervals"):
        new.strategy(probe=41)


def test_a_task_of_the_family_is_refused(new: NewTaskExample) -> None:
    with pytest.raises(InputError, match="'slow' is a task of the family, expected a new name: pass another"):
        new.strategy(task="slow")


def test_other_lengths_are_refused(new: NewTaskExample) -> None:
    with pytest.raises(InputError, match=r"the family's runs take 60 steps, got steps=80: leave steps= out, or make a"):
        Tuner(lr=SPACE.lr_range, steps=80, strategy=new.strategy())


def test_rates_of_forks_keep_a_distance() -> None:
    x = list[float]()
    for wanted in (0.5, 0.5, 0.52, 1.0, 1.0):
        x.append(distinct_rate(wanted, x))
    assert x[0] == 0.5
    assert all(abs(a - b) >= MIN_RATE_GAP - 1e-9 for i, a in enumerate(x) for b in x[:i])
    assert all(0 <= value <= 1 for value in x)
