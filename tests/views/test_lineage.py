"""Rows, bars and branches of forks."""

from itertools import pairwise

import pytest

from paceline.views.lineage import lineage
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden
from tests.views.test_curves import chain_of_clones


def test_a_bar_for_each_rate_of_a_fork_and_a_branch_for_each_clone() -> None:
    data = lineage(study_view(STUDY))
    assert data is not None
    assert data.borders == (0, 20, 100)
    assert [(b.fork, b.first, b.last, b.multiplier, b.on_best_path) for b in data.bars] == [
        (0, 0, 2, 0.1, True),  # one bar, since its rate did not change; it is on the path until it was cloned
        (1, 0, 1, 0.01, False),
        (2, 1, 2, 0.05, True),
    ]
    (branch,) = data.branches
    assert (branch.parent, branch.fork, branch.border, branch.on_best_path) == (0, 2, 1, True)
    assert data.bars[2].row == data.bars[1].row == 1  # the row of the fork that was dropped
    assert lineage(study_view([])) is None


@pytest.mark.parametrize("name", ["journal-1", "journal-1-greedy", "journal-1-family"])
def test_bars_in_a_row_never_overlap(name: str) -> None:
    data = lineage(study_view(golden(name)))
    assert data is not None
    for row in range(len(data.row_names)):
        bars = sorted((bar for bar in data.bars if bar.row == row), key=lambda bar: bar.first)
        assert all(before.last <= after.first for before, after in pairwise(bars))


def test_runs_of_a_family_have_a_row_each_grouped_by_task() -> None:
    view = study_view(golden("journal-1-family"))
    data = lineage(view)
    assert data is not None
    assert data.branches == ()
    assert len(data.row_names) == len(view.forks)
    rows = {bar.fork: bar.row for bar in data.bars}
    assert all(data.row_names[rows[fork.fork]] == f"{fork.task}, run {fork.fork}" for fork in view.forks)
    tasks = [name.rpartition(", run ")[0] for name in data.row_names]
    assert tasks == sorted(tasks, key=view.tasks.index)
    assert {bar.fork for bar in data.bars if bar.on_best_path} == {run.fork for run in view.best_runs.values()}


def test_a_long_study_shows_its_latest_forks_and_counts_the_others() -> None:
    data = lineage(study_view(chain_of_clones(2_000)))
    assert data is not None
    assert (len(data.bars), data.omitted_forks) == (1_001, 999)
