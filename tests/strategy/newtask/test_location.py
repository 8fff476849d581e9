"""Where a new task lies, for decisions and for the journal."""

import numpy as np
import pytest

from paceline import TraceModel, Tuner
from paceline.strategy.newtask.location import head_until
from tests.strategy.newtask.example_family import BEST, SPACE, run


def test_a_run_tells_where_its_task_lies(fast: Tuner) -> None:
    spreads = [decision.details["location"]["spread"] for decision in fast.study.decisions]
    assert spreads[-1] < 0.7 * spreads[0]
    assert fast.result.schedule is not None
    x = SPACE.lr_range.to_unit(fast.result.schedule.multipliers)
    assert x[1:] == pytest.approx([BEST["fast"]] * 2, abs=0.2)


def test_the_journal_has_locations_on_the_axes_of_the_known_tasks(fast: Tuner, model: TraceModel) -> None:
    details = fast.study.decisions[1].details
    location, at = details["location"], {row["task"]: row["at"] for row in details["embedding"]}
    assert list(at) == list(BEST)  # in the order of the family
    assert at == {task: pytest.approx(w.tolist(), rel=1e-4) for task, w in model.task_embedding.items()}
    samples, weights = np.array(location["samples"]), np.array(location["weights"])
    assert samples.shape == (15, 2)
    assert sorted(weights, reverse=True) == weights.tolist()
    assert weights.sum() == pytest.approx(1.0, abs=1e-4)
    assert weights @ samples == pytest.approx(location["mean"], abs=1e-4)
    assert np.trace(location["covariance"]) ** 0.5 == pytest.approx(location["spread"], rel=1e-4)


def test_the_head_of_a_run_is_what_was_observed_until_then() -> None:
    trace = run("slow", 0.2, (0.2, 0.2, 0.2), 1)
    head = head_until(trace, 22)
    assert head is not None
    assert head.steps.tolist() == [0, 4, 8, 12, 16, 20]
    assert head_until(trace, -1) is None
