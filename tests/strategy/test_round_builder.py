"""One decision, put together fork by fork."""

import numpy as np
import pytest

from paceline.strategy import FixedFactor, Fork, History
from paceline.strategy.rate_choosers import FittedModels
from paceline.strategy.round_builder import RoundBuilder
from paceline.traces import Schedule, Trace
from tests.strategy.example_forks import make_fork, make_history


def builder_for(history: History) -> RoundBuilder:
    return RoundBuilder(
        history, start=500, stop=700, chooser=FixedFactor(), models=FittedModels(history), max_change=0.45
    )


def forks_at(*rates: float) -> list[Fork]:
    """Forks at these rates, the first one best."""
    return [make_fork(i, rate, value=1.0 + i) for i, rate in enumerate(rates)]


def test_forks_go_on_at_their_rates_and_a_clone_begins_at_another() -> None:
    forks = forks_at(0.1, 0.01, 0.001)
    builder = builder_for(make_history(*forks))
    builder.keep(forks[0])
    builder.clone(forks[0], 0.5)
    decision = builder.decision(forks, 0.0)
    kept, clone = decision.intervals
    assert (kept.fork, kept.parent, kept.start, kept.stop, kept.round) == (0, None, 500, 700, 2)
    assert kept.multiplier == 0.1
    assert (clone.fork, clone.parent, clone.start) == (3, 0, 500)
    assert clone.multiplier == pytest.approx(0.1 / 1.6)
    assert clone.schedule.multipliers[0] == 0.1
    ranking, reason = decision.reasons
    assert [row["fork"] for row in ranking["ranking"]] == [0, 1, 2]
    assert (reason.kind, reason["fork"], reason["parent"], reason["why"].kind) == ("clone", 3, 0, "factor")
    assert decision.details["ranking"] == ranking["ranking"]


def test_forks_that_do_not_go_on_are_dropped_each_with_its_reason() -> None:
    forks = forks_at(0.1, 0.01, 0.001)
    builder = builder_for(make_history(*forks))
    builder.keep(forks[1])
    builder.clone(forks[0], 0.5)
    drops = dict(builder.decision(forks, 0.0).drops)
    assert set(drops) == {0, 2}
    assert (drops[0].kind, drops[0]["clone"]) == ("cloned", 3)  # it leads, and its clone goes on
    assert (drops[2].kind, drops[2]["value"]) == ("behind", 3.0)


def noisy_fork(number: int, rate: float, noise: float) -> Fork:
    """A fork whose averaged weights gain 0.3 per factor e of time; its raw ones are worse by `noise`."""
    schedule, steps = Schedule([rate], [0, 500], 1000, "constant"), np.arange(10, 501, 10)
    averaged = 2.0 - 0.3 * np.log(steps)
    traces = [Trace(steps, values, schedule, name=str(number)) for values in (averaged, averaged + noise)]
    last = {"averaged": float(averaged[-1]), "raw": float(averaged[-1] + noise)}
    return Fork(number, None, 0, schedule, *traces, last_values=last)


@pytest.mark.parametrize(("noise", "change"), [(10.0, -0.2), (0.3, 0.0), (0.0, 0.15)])
def test_a_rate_is_corrected_by_noise_and_progress_if_they_ask_for_much(noise: float, change: float) -> None:
    lasting = make_fork(1, 0.5, value=3.0)
    fork = noisy_fork(0, 0.1, noise)
    builder = builder_for(make_history(fork, lasting))
    builder.keep_at_corrected_rate(fork)
    assert np.log10(builder.intervals[0].multiplier / 0.1) == pytest.approx(change)
    assert [reason.kind for reason in builder.reasons] == ["new rate"] * bool(change)


def test_a_corrected_rate_stays_within_the_bounds_and_below_a_rate_that_lasted() -> None:
    fork, lowest = noisy_fork(0, 0.1, 0.0), noisy_fork(1, 1.2e-4, 10.0)
    brief = make_fork(2, 0.5, stop=20, value=3.0)
    builder = builder_for(make_history(fork, lowest, brief))
    builder.keep_at_corrected_rate(fork)
    builder.keep_at_corrected_rate(lowest)
    assert [interval.multiplier for interval in builder.intervals] == pytest.approx([0.1, 1e-4])


def test_clones_avoid_each_others_rates() -> None:
    forks = forks_at(0.1, 0.01)
    builder = builder_for(make_history(*forks))
    builder.keep(forks[0])
    builder.clone(forks[0], 0.5)
    builder.clone(forks[0], 0.9)
    assert [interval.fork for interval in builder.intervals] == [0, 2, 3]
    assert [interval.multiplier for interval in builder.intervals] == pytest.approx([0.1, 0.1 / 1.6, 0.16])


def test_a_fork_may_go_on_at_a_new_rate() -> None:
    forks = forks_at(0.1)
    builder = builder_for(make_history(*forks))
    builder.keep_at_new_rate(forks[0], 0.5)
    (interval,) = builder.intervals
    assert (interval.fork, interval.parent, interval.multiplier) == (0, None, pytest.approx(0.1 / 1.6))
    assert builder.reasons[0].kind == "new rate"


@pytest.mark.parametrize(
    ("rates", "edge", "rate"),
    [
        ((0.1, 0.01, 0.001), "highest", 0.1 * 10**0.35),
        ((0.001, 0.01, 0.1), "lowest", 0.001 / 10**0.35),
        ((0.5, 0.01, 0.001), "highest", 1.0),  # the bound
    ],
)
def test_a_best_fork_at_the_edge_is_cloned_further_out(rates: tuple[float, ...], edge: str, rate: float) -> None:
    forks = forks_at(*rates)
    builder = builder_for(make_history(*forks))
    for fork in forks:
        builder.keep(fork)
    builder.explore_edge(forks[0], 0.35)
    assert [interval.fork for interval in builder.intervals] == [0, 1, 3]  # the worst survivor is replaced
    clone = builder.intervals[-1]
    assert (clone.parent, clone.multiplier) == (0, pytest.approx(rate))
    (reason,) = builder.reasons
    assert (reason.kind, reason["edge"], reason["fork"], reason["clone"]) == ("edge", edge, 0, 3)


@pytest.mark.parametrize("rates", [(0.01, 0.1, 0.001), (0.9, 0.1, 0.01), (0.1,)])
def test_nothing_is_explored_inside_near_a_bound_or_with_one_fork(rates: tuple[float, ...]) -> None:
    forks = forks_at(*rates)
    builder = builder_for(make_history(*forks))
    for fork in forks:
        builder.keep(fork)
    builder.explore_edge(forks[0], 0.35)
    assert [interval.fork for interval in builder.intervals] == [fork.id for fork in forks]
    assert not builder.reasons
