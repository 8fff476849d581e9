"""How high the next rate of a new task may be."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import TraceModel
from paceline.strategy.newtask.rate_limit import RateLimit, is_beyond_family, rate_limit
from paceline.study import because
from paceline.traces import Schedule
from tests.strategy.newtask.example_family import SPACE, THOROUGH, NewTaskExample, run, run_new_task

BEFORE = Schedule(SPACE.lr_range.from_unit(np.array([0.6, 0.4])), [0, 20, 40], 60)


def test_what_a_rate_is_limited_to() -> None:
    assert rate_limit(SPACE, BEFORE, beyond=False, last=False) == RateLimit()
    for last in (False, True):
        beyond = rate_limit(SPACE, BEFORE, beyond=True, last=last)
        assert beyond.x == pytest.approx(0.4)
        assert beyond.reason == because("beyond known runs")
    last = rate_limit(SPACE, BEFORE, beyond=False, last=True)
    assert last.x == pytest.approx(0.6)
    assert last.reason == because("last interval")


def test_only_what_lies_above_is_limited() -> None:
    limit = RateLimit(0.6, because("last interval"))
    assert limit.binds(0.7)
    assert limit.apply(0.7) == 0.6
    assert not limit.binds(0.6 + 1e-12)  # the same rate, by way of its logarithm
    assert limit.apply(0.6 + 1e-12) == 0.6 + 1e-12
    assert limit.apply(0.3) == 0.3
    assert RateLimit().apply(1.0) == 1.0


def test_a_run_is_beyond_the_family_by_its_level(model: TraceModel) -> None:
    located = model.with_task("new", model.posterior.hyper.embedding[0])
    best = min(-s.start_values[0] for s in model.segments)  # the model's values are improvements
    usual = replace(run("slow", 0.2, (0.2, 0.2, 0.2), 9).head(6), task="new")
    assert float(usual.last_value) > best
    assert not is_beyond_family(model, located, "new", usual)
    lower = replace(usual, values=usual.values - (float(usual.last_value) - best) - 0.3)
    assert is_beyond_family(model, located, "new", lower)
    lucky = np.array(usual.values)
    lucky[-1] = best - 0.01  # one value does not make a level
    assert not is_beyond_family(model, located, "new", replace(usual, values=lucky))


@pytest.mark.parametrize("below", [0.0, 2.0])
@pytest.mark.parametrize("method", ["dynamic", "universal"])
def test_the_rate_is_raised_among_known_levels_alone(new: NewTaskExample, below: float, method: str) -> None:
    """The same task once more with lower values: the same plan, which is to raise the rate after the first interval."""
    tuner = run_new_task(new.strategy(THOROUGH, method=method), below=below)
    assert tuner.result.schedule is not None
    first, second, _ = tuner.result.schedule.multipliers
    reasons = [reason for decision in tuner.study.decisions for reason in decision.reasons]
    limits = [reason.kind for reason in reasons if reason.kind in ("beyond known runs", "last interval")]
    limited = [reason["limited"] for reason in reasons if reason.kind == "plan"]
    if method == "universal":
        assert not limits
    elif below:
        assert second == pytest.approx(first)
        assert limits == ["beyond known runs"]
        assert limited == [False, True, False]
        assert tuner.study.decisions[1].reasons[1]["rates"] == pytest.approx([1.0, 1.0])
    else:
        assert second > 2 * first
        assert not limits
        assert not any(limited)
