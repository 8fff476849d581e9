"""Studies of all peers: they tune, keep their cost, go on after an interruption, and end with advice."""

from pathlib import Path

import pytest

from benchmarks.peers import AutoLRS, PopulationBasedBandits, PopulationBasedTraining
from paceline.problems import Quadratic, QuadraticTraining
from paceline.shapes import Constant
from paceline.strategy import FixedSchedules, Strategy
from paceline.study import Event, Interval
from paceline.tuner import Tuner, tune
from tests.tuner.loop_checks import check_advice, check_end, check_interruptions, check_order

PEERS: dict[str, Strategy] = {
    "pbt": PopulationBasedTraining(forks=4, intervals=8),
    "pb2": PopulationBasedBandits(forks=4, intervals=8),
    "autolrs": AutoLRS(),
    "autolrs-5": AutoLRS(cost=5),
}
SHORT: dict[str, Strategy] = {
    "pbt": PopulationBasedTraining(forks=4, intervals=5),
    "pb2": PopulationBasedBandits(forks=4, intervals=5),
    "autolrs": AutoLRS(trials=3, stages=(1, 2, 2)),
}


@pytest.mark.parametrize("name", list(PEERS))
def test_it_beats_the_worst_fixed_rate_and_keeps_its_cost(name: str) -> None:
    events: list[Event] = []
    strategy, settings = PEERS[name], {"steps": 620, "lr": (1e-3, 1.0)}
    result = tune(
        lambda: QuadraticTraining(Quadratic(), every=2), strategy=strategy, on_event=events.append, **settings
    )
    ends = tune(
        lambda: QuadraticTraining(Quadratic()), strategy=FixedSchedules((Constant(),), runs=5), **settings
    ).history.forks
    assert result.value is not None
    assert result.value < max(fork.recent() for fork in ends)
    took = sum(e.stop - e.start for e in events if isinstance(e, Interval))
    assert took <= Tuner(strategy=strategy, **settings).total_steps


@pytest.mark.parametrize("name", list(SHORT))
def test_a_study_ends_within_its_cost_with_a_winner(name: str) -> None:
    check_end(SHORT[name])


def test_reports_in_any_order_give_the_same_decisions() -> None:
    check_order(SHORT["pb2"])


@pytest.mark.parametrize("name", ["pb2", "autolrs"])
def test_cut_after_any_line_a_study_goes_on_with_the_same_decisions(name: str, tmp_path: Path) -> None:
    check_interruptions(SHORT[name], tmp_path)


@pytest.mark.parametrize("name", ["pbt", "autolrs"])
def test_when_every_fork_fails_the_study_ends_with_advice(name: str) -> None:
    check_advice(SHORT[name])
