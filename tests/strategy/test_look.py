"""Deciding by the forecast of the end: when the law speaks, when it overrules, and what it never does."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from paceline import tune
from paceline.errors import InputError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.strategy import Dynamic, Fork, Goal, History, horizon_plan
from paceline.strategy.choose import Choice
from paceline.strategy.look import Outlook, with_looks
from paceline.study import Decided, because
from paceline.traces import LearningRateRange, Objective, Schedule, Trace

PROBLEM = Quadratic(noise=0.5, dims=30)
GOAL = Goal(LearningRateRange(1e-3, 1.0), 1000, Objective())
BLIND = because("factor", factor=1.6, fork=0)


@dataclass(frozen=True, slots=True, eq=False)
class Told(Outlook):
    """An outlook that is told the final loss at each rate: best at 0.1, and how sure it may be."""

    sure: float = 1.0

    def finals(self, fork, rates):
        best = np.array([-(np.log10(rate / 0.1) ** 2) for rate in rates])
        draws = np.arange(100)[:, None] < 100 * self.sure
        return np.where(draws, best, -best)


def fork(number: int, rate: float, last_step: int = 500, value: float = 1.0) -> Fork:
    schedule = Schedule([rate], [0, last_step], 1000, "constant")
    trace = Trace(np.array([last_step]), np.array([value]), schedule, name=str(number))
    return Fork(number, None, 0, schedule, trace, trace)


def told(*forks: Fork, sure: float = 1.0) -> Told:
    return Told(History(GOAL, forks), None, sure)  # pyright: ignore[reportArgumentType]


def study(strategy: Dynamic) -> tuple[float, list[Decided]]:
    """What a study ends at, and its decisions."""
    decided = list[Decided]()
    found = tune(
        lambda: QuadraticTraining(PROBLEM, 3),
        steps=400,
        lr=(1e-3, 1.0),
        strategy=strategy,
        on_event=lambda event: decided.append(event) if isinstance(event, Decided) else None,
    )
    return found.value, decided


def test_the_law_overrules_only_where_it_is_sure() -> None:
    parent, blind = fork(0, 0.2), Choice(0.32, BLIND)
    assert told(parent).challenger(parent, blind, [0.2], 1, 0.45).rate == pytest.approx(0.1, rel=0.01)
    assert told(parent, sure=0.8).challenger(parent, blind, [0.2], 1, 0.45).rate == 0.32
    assert told(parent, sure=0.8).challenger(parent, blind, [0.2], 2, 0.45).rate == pytest.approx(0.1, rel=0.01)
    unsure = told(parent, sure=0.8).challenger(parent, blind, [0.2], 1, 0.45).reason
    assert (unsure.kind, unsure["instead"]) == ("unsure", blind.reason)
    sure = told(parent).challenger(parent, blind, [0.2], 1, 0.45).reason
    assert (sure.kind, sure["probability"], sure["otherwise"]) == ("ends better", 1.0, 0.32)
    assert told(parent).going_on(parent, 0.3).rate == pytest.approx(0.1, rel=0.01)
    assert told(parent, sure=0.6).going_on(parent, 0.3).rate == 0.2


def test_it_never_goes_above_what_lasted_nor_far_nor_where_others_are() -> None:
    low, brief = fork(0, 0.01), fork(1, 0.1, last_step=20)
    found = told(low, brief).challenger(low, Choice(0.006, BLIND), [0.01], 1, 0.45).rate
    assert found < 0.01 * 1.0001  # the fork at 0.1 lived for 2 % of the run
    lasting = fork(1, 0.1)
    assert told(low, lasting).going_on(low, 0.3).rate == pytest.approx(0.02, rel=0.01)
    taken = told(low, lasting).challenger(low, Choice(0.016, BLIND), [0.01, 0.01 * 10**0.45], 1, 0.45).rate
    assert taken == pytest.approx(0.01 * 10**0.35)


def test_a_fork_that_will_end_best_goes_on_where_the_law_is_sure() -> None:
    forks = [fork(0, 0.5), fork(1, 0.4), fork(2, 0.3), fork(3, 0.1)]
    assert [f.id for f in told(*forks).ranked(forks, 1)] == [0, 3, 1, 2]
    assert [f.id for f in told(*forks).ranked(forks, 0)] == [3, 0, 1, 2]
    assert [f.id for f in told(*forks, sure=0.9).ranked(forks, 1)] == [0, 1, 2, 3]
    assert [f.id for f in told(*forks).ranked(forks[::-1], 1)] == [3, 2, 1, 0]  # it leads anyway
    assert [f.id for f in told(*forks).ranked(forks[:1], 1)] == [0]


def test_of_several_clones_only_the_first_is_the_laws() -> None:
    _, decided = study(Dynamic.horizon(cost=5))
    clones = [[r for r in event.reasons if r.kind == "clone"] for event in decided if "forecast" in event.details]
    assert clones
    for first, second in clones:
        assert first["why"].kind in ("ends better", "unsure")
        assert second["why"].kind == "factor"


@pytest.mark.parametrize(
    ("mode", "stands", "forecast"),
    [("min", 0.5, None), ("min", 0.05, 0.09062), ("max", -0.5, None), ("max", 0.5, -0.09062)],
)
def test_a_law_by_which_the_leader_ends_worse_than_it_stands_is_not_heard(
    mode, stands: float, forecast: float | None
) -> None:
    leader, goal = fork(0, 0.2, value=stands), replace(GOAL, objective=Objective(mode))
    reason = Told(History(goal, (leader,)), None).contradiction(leader, 0.34)  # pyright: ignore[reportArgumentType]
    if forecast is None:
        assert reason is None
    else:
        assert reason == because("contradiction", fork=0, forecast=pytest.approx(forecast, abs=1e-5), now=stands)


def test_which_costs_hear_the_law_by_default() -> None:
    looks = [Dynamic.horizon(cost=cost).judge_by for cost in (1.5, 2.3, 3.2, 4, 5)]
    assert looks == ["final", "now", "now", "final", "final"]
    assert Dynamic.horizon(forks=5).judge_by == "now"


def test_a_study_says_when_the_law_is_not_heard() -> None:
    @dataclass(frozen=True, slots=True)
    class Gloomy(Dynamic):
        def _outlook(self, history: History) -> Outlook | None:
            known = Outlook.of(history)
            return None if known is None else Worse(known.history, known.model)

    class Worse(Outlook):
        def finals(self, fork, rates):
            return np.full((100, len(rates)), -1e3)

    heard = Dynamic.horizon(cost=5)
    value, decided = study(Gloomy(**{name: getattr(heard, name) for name in heard.__dataclass_fields__}))
    contradictions = [reason for event in decided for reason in event.reasons if reason.kind == "contradiction"]
    assert len(contradictions) == 3  # at 35, 50 and 70 %
    assert value == study(Dynamic.horizon(cost=5, judge_by="now"))[0]


@pytest.mark.parametrize(("cost", "rungs"), [(1.5, [0.5, 0.7]), (2.3, []), (5, [])])
def test_a_plan_that_ends_in_one_fork_gets_rungs_at_no_cost(cost: float, rungs: list[float]) -> None:
    plan = horizon_plan(cost)
    looked = with_looks(plan)
    assert [rung.at for rung in looked.rungs[len(plan.rungs) :]] == rungs
    assert looked.total_steps(1000) == plan.total_steps(1000)


@pytest.mark.parametrize("cost", [1.5, 2.3])
def test_a_study_tells_what_the_law_expects_and_repeats_itself(cost: float) -> None:
    strategy = Dynamic.horizon(cost=cost, judge_by="final")
    (value, decided), (again, _) = study(strategy), study(strategy)
    assert value == again
    bands = [event.details["forecast"] for event in decided if "forecast" in event.details]
    assert bands
    assert all(band["steps"][-1] == 400 for bands_ in bands for band in bands_)  # to the end of the run
    whys = [reason["why"].kind for event in decided for reason in event.reasons if "why" in reason.data]
    assert {"ends better", "unsure"} & set(whys)


def test_without_enough_to_learn_from_there_is_no_outlook() -> None:
    bare = Fork(0, None, 0, Schedule([0.1], [0, 10], 1000, "constant"))
    assert Outlook.of(History(GOAL, (bare,))) is None


def test_forks_are_judged_by_now_or_final() -> None:
    with pytest.raises(InputError, match='judge_by must be "now" or "final", got \'later\''):
        Dynamic.horizon(judge_by="later")
