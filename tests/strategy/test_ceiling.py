"""How high the next rate of a new task may be."""

from dataclasses import replace

import numpy as np
import pytest

from paceline import Trace, TraceModel, Tuner
from paceline.strategy import NewTask
from paceline.strategy.newtask.ceiling import Ceiling, beyond, ceiling_of
from paceline.traces import Schedule
from tests.strategy.made_family import FAMILY, SMALL, SPACE, STEPS, run, values

BEFORE = Schedule(SPACE.lr_range.from_unit(np.array([0.6, 0.4])), [0, 20, 40], 60)


def test_what_a_rate_is_held_to() -> None:
    assert ceiling_of(SPACE, BEFORE, outside=False, last=False) == Ceiling()
    for last in (False, True):
        outside = ceiling_of(SPACE, BEFORE, outside=True, last=last)
        assert outside.x == pytest.approx(0.4)
        assert "stands better than any known one did" in outside.reason
    last = ceiling_of(SPACE, BEFORE, outside=False, last=True)
    assert last.x == pytest.approx(0.6)
    assert "no interval is left to mend that" in last.reason


def test_only_what_lies_above_is_held() -> None:
    ceiling = Ceiling(0.6, "why")
    assert ceiling.held(0.7) == (0.6, "why")
    assert ceiling.held(0.6 + 1e-12) == (0.6 + 1e-12, "")  # the same rate, by way of its logarithm
    assert ceiling.held(0.3) == (0.3, "")
    assert Ceiling().held(1.0) == (1.0, "")


def test_a_run_is_beyond_the_family_by_its_level(model: TraceModel) -> None:
    located = model.with_task("new", model.posterior.hyper.embedding[0])
    best = min(-s.start_values[0] for s in model.segments)  # the model's values are improvements
    usual = replace(run("slow", 0.2, (0.2, 0.2, 0.2), 9).head(6), task="new")
    assert float(usual.last_value) > best
    assert not beyond(model, located, "new", usual)
    lower = replace(usual, values=usual.values - (float(usual.last_value) - best) - 0.3)
    assert beyond(model, located, "new", lower)
    lucky = np.array(usual.values)
    lucky[-1] = best - 0.01  # one value does not make a level
    assert not beyond(model, located, "new", replace(usual, values=lucky))


@pytest.mark.parametrize("below", [0.0, 2.0])
@pytest.mark.parametrize("how", ["dynamic", "universal"])
def test_a_rise_is_run_among_known_levels_alone(
    known: tuple[Trace, ...], model: TraceModel, below: float, how: str
) -> None:
    """The same task once more with lower values: the same plan, which is to raise the rate after the first interval."""
    strategy = NewTask(FAMILY, known, model, how=how, thought=replace(SMALL, places=15, grid=5))
    tuner = Tuner(lr=SPACE.lr_range, steps=60, strategy=strategy)
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            mine = (p.start < STEPS) & (p.stop >= STEPS)
            tuner.tell(p, STEPS[mine].tolist(), (values(p.schedule, 0.8, p.fork)[mine] - below).tolist())
    assert tuner.result.schedule is not None
    first, second, _ = tuner.result.schedule.multipliers
    held = [reason for d in tuner.study.decisions for reason in d.reasons if "not raised" in reason]
    if how == "universal":
        assert not held
    elif below:
        assert second == pytest.approx(first)
        assert held == ["its rate is not raised: the run stands better than any known one did"]
        assert "held below the first of 1, 1:" in tuner.study.decisions[1].reasons[1]
    else:
        assert second > 2 * first
        assert not held
