"""What figures draw, as numbers: the journal's own, and nothing that was not observed or journaled."""

from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from paceline.study import Created, Decided, Event, Interval, read_journal
from paceline.traces import Schedule
from paceline.views.bands import checks, coverage, fans, level
from paceline.views.curves import best_curve, births, curves, rate_line, thinned
from paceline.views.data import Spent, read
from paceline.views.grids import failure_lines, surfaces
from paceline.views.lineage import lineage
from paceline.views.places import new_place, places
from paceline.views.spending import bills
from tests.views.test_data import STUDY

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> list[Event]:
    return read_journal(GOLDEN / f"{name}.jsonl")


def test_a_decision_knows_what_it_asked_for_and_what_was_spent_before() -> None:
    view = read(STUDY)
    assert [decision.done for decision in view.decisions] == [0, 40, 160]
    assert [(s.fork, s.parent, s.start, s.stop, s.multiplier) for s in view.decisions[1].proposed] == [
        (2, 0, 20, 100, 0.05),
        (0, None, 20, 100, 0.1),
    ]
    assert view.best_so_far == (Spent(20, 1.5), Spent(40, 1.2), Spent(120, 0.45))


def test_curves_begin_where_they_were_cloned_and_leave_out_what_is_no_number() -> None:
    view = read(STUDY)
    raw = view._replace(settings={**view.settings, "strategy": {"of": "raw"}})
    by_fork = {curve.fork: curve for curve in curves(raw)}
    assert by_fork[2].steps == (20, 60, 100)
    assert by_fork[2].values == (1.5, 0.9, 0.5)
    assert by_fork[0].steps == (10, 20)  # the value at step 60 is not finite
    best = best_curve(view)
    assert best is not None
    assert (best.fork, best.steps, best.values) == (2, (10, 20, 60, 100), (2.2, 1.6, 0.8, 0.45))
    (birth,) = births(view)
    assert (birth.fork, birth.parent, birth.step, birth.value) == (2, 0, 20, 1.6)
    assert birth.rate == pytest.approx(0.05 * 0.8)


def test_rates_jump_where_they_change() -> None:
    assert rate_line(Schedule([0.1, 0.01], [0, 50, 100]), 0, 100) == ((0, 50, 50, 100), (0.1, 0.1, 0.01, 0.01))
    assert rate_line(Schedule([0.1, 0.01], [0, 50, 100]), 50, 100) == ((50, 50, 100), (0.1, 0.01, 0.01))
    assert rate_line(Schedule([0.1], [0, 50]), 50, 50) == ((), ())
    steps, rates = rate_line(Schedule([1.0], [0, 1000], base="linear"), 0, 1000)
    assert np.interp([0, 250, 999], steps, rates) == pytest.approx([1, 0.75, 0.001], abs=1e-3)


def test_thinning_keeps_spikes_and_ends(rng: np.random.Generator) -> None:
    values = rng.normal(size=10_000)
    values[[1234, 8765]] = 50, -50
    steps, kept = thinned(range(10_000), values.tolist(), most=200)
    assert len(steps) <= 202
    assert {0, 1234, 8765, 9999} <= set(steps)
    assert all(values[step] == value for step, value in zip(steps, kept, strict=True))
    assert list(steps) == sorted(set(steps))


def test_lineage_has_a_bar_a_rate_and_a_branch_a_clone() -> None:
    found = lineage(read(STUDY))
    assert found is not None
    assert found.borders == (0, 20, 100)
    assert [(b.fork, b.first, b.last, b.multiplier, b.leads) for b in found.bars] == [
        (0, 0, 2, 0.1, True),  # one bar: its rate did not change; it led until it was cloned
        (1, 0, 1, 0.01, False),
        (2, 1, 2, 0.05, True),
    ]
    (branch,) = found.branches
    assert (branch.parent, branch.fork, branch.border, branch.leads) == (0, 2, 1, True)
    assert found.bars[2].row == found.bars[1].row == 1  # the row of the fork that was dropped
    assert lineage(read([])) is None


def test_bars_of_a_row_never_overlap() -> None:
    for name in ("journal-1-greedy", "journal-1-family"):
        found = lineage(read(golden(name)))
        assert found is not None
        for row in range(len(found.rows)):
            bars = sorted((b for b in found.bars if b.row == row), key=lambda b: b.first)
            assert all(a.last <= b.first for a, b in pairwise(bars))


def test_fans_are_the_journaled_forecasts_with_what_followed() -> None:
    events = golden("journal-1-greedy")
    found = fans(read(events))
    told = [(e.round, f) for e in events if isinstance(e, Decided) for f in e.details.get("forecast", [])]
    assert len(found) == len(told) > 0
    for fan, (number, journaled) in zip(found, told, strict=True):
        assert (fan.round, fan.fork) == (number, journaled["fork"])
        for name in ("steps", "low", "median", "high"):
            assert list(getattr(fan, name)) == journaled[name]
        assert all(fan.start < step <= fan.steps[-1] for step in fan.seen_steps)
    ran = [e for e in events if isinstance(e, Observed) and e.fork == found[0].fork]
    assert found[0].seen == ran[0].values["raw"]


def test_a_look_at_the_end_is_of_raw_weights() -> None:
    created, *rest = STUDY
    assert isinstance(created, Created)
    strategy = {**created.settings["strategy"], "look": "final"}
    (fan,) = fans(read([Created({**created.settings, "strategy": strategy}), *rest]))
    assert (fan.of, fan.start_value, fan.seen) == ("raw", 1.5, (0.9, 0.5))
    (fan,) = fans(read(STUDY))
    assert (fan.of, fan.start_value, fan.seen) == ("averaged", 1.6, (0.8, 0.45))


def test_checks_and_coverage_against_the_slow_way() -> None:
    (fan,) = fans(read(STUDY))
    first, second = checks(fan)
    assert (first.step, first.seen, first.inside) == (60, 0.8, False)  # the band was 0.4 to 0.6
    assert (second.step, second.seen, second.inside) == (100, 0.45, False)
    covered = coverage((first, second, first._replace(seen=0.5)))
    assert covered is not None
    assert covered.inside == pytest.approx(1 / 3)
    assert covered.below == ((0.05, 0.0), (0.5, pytest.approx(1 / 3)), (0.95, pytest.approx(1 / 3)))
    assert coverage(()) is None
    assert not checks(fan._replace(seen_steps=(), seen=()))
    assert len(checks(fan._replace(seen_steps=(24, 28), seen=(1.0, 1.0)))) == 0  # it failed long before


def test_levels_are_those_of_a_normal_and_meet_the_journaled_quantiles() -> None:
    normal = NormalDist(3.0, 0.7)
    low, median, high = (normal.inv_cdf(q) for q in (0.05, 0.5, 0.95))
    for q in (0.001, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999):
        assert level(normal.inv_cdf(q), low, median, high) == pytest.approx(q, abs=1e-9)
    assert [level(x, 1.0, 1.0, 1.0) for x in (0.0, 1.0, 2.0)] == [0.0, 0.5, 1.0]


def test_grids_are_those_of_the_journal() -> None:
    events = golden("journal-1-greedy")
    decided = [e for e in events if isinstance(e, Decided) and "surface" in e.details]
    found = surfaces(read(events))
    assert [one.round for one in found] == [e.round for e in decided]
    for one, event in zip(found, decided, strict=True):
        surface = event.details["surface"]
        assert list(one.rates) == surface["rates"]
        assert [list(row) for row in one.latents[0].mean] == surface["latents"][0]["mean"]
        assert one.p_fail is not None
        assert [list(row) for row in one.p_fail] == surface["p_fail"]
        proposed = [e for e in events if isinstance(e, Interval) and e.round == event.round]
        assert [(c.fork, c.rate) for c in one.chosen] == [(p.fork, p.schedule.multipliers[-1]) for p in proposed]
    lines = failure_lines(read(events))
    assert list(lines[0].probability) == decided[0].details["p_fail"][0]["probability"]


def test_a_surface_without_p_fail_and_with_gaps_is_read() -> None:
    old = {
        "values": [1, 2],
        "rates": [0.1, 1],
        "latents": [{"mean": [[0, None], [1, 2]], "deviation": [[1, 1], [1, 1]]}],
    }
    (one,) = surfaces(read([*STUDY[:6], Decided(2, 20, (), {"surface": old}, 0.0), *STUDY[7:11]]))
    assert one.p_fail is None
    assert one.latents[0].mean == ((0.0, None), (1.0, 2.0))
    assert [(c.fork, c.value, c.rate) for c in one.chosen] == [(2, 1.6, 0.05), (0, 1.6, 0.1)]


def test_places_of_tasks_and_of_a_new_one() -> None:
    assert [place.task for place in places(read(golden("journal-1-family")))] == ["calm", "log", "wild"]
    assert new_place(read(golden("journal-1-family"))) is None
    place = {"mean": [1.0, 2.0, 9.0], "covariance": np.diag([0.25, 0.04, 1.0]).tolist(), "spread": 1.0}
    place |= {"points": [[1, 2, 3]], "weights": [0.5]}
    details = {"place": place, "embedding": [{"task": "a", "at": [0.0, 0.5, 7.0]}]}
    view = read([STUDY[0], Decided(1, 0, (), details, 0.0)])
    assert places(view) == (("a", (0.0, 0.5)),)
    new = new_place(view)
    assert new is not None
    assert (new.mean, new.points, new.weights) == ((1.0, 2.0), ((1.0, 2.0),), (0.5,))
    x, y = np.array(new.outline).T
    assert (x.min(), x.max(), y.min(), y.max()) == pytest.approx((0.0, 2.0, 1.6, 2.4), abs=1e-6)
    assert ((x - 1) ** 2 / 1.0 + (y - 2) ** 2 / 0.16) == pytest.approx(np.ones(len(x)))


def test_bills_say_what_a_study_cost_and_came_to() -> None:
    over, open_, family = bills({"a": read(STUDY), "b": read(STUDY[:11]), "c": read(golden("journal-1-family"))})
    assert (over.cost, over.value, over.of, over.finished) == (1.6, 0.45, "averaged", True)
    assert over.way == ((0.2, 1.5), (0.4, 1.2), (1.2, 0.45))
    assert (open_.value, open_.finished) == (1.6, False)
    assert family.cost == 3.0
    best = [run.value for run in read(golden("journal-1-family")).best_runs.values()]
    assert family.value == pytest.approx(np.mean(best))
    assert family.way == ()


def test_a_long_study_is_read_in_linear_time() -> None:
    """Two thousand clones of clones: no recursion, and no fork that is searched for among all others."""
    schedule = Schedule([0.1], [0, 1], 4_000)
    events: list[Event] = [Created({"lr": [0.01, 1.0], "steps": 4_000, "mode": "min"}), Decided(1, 0, (), {}, 0.0)]
    for n in range(2_000):
        events.append(Interval(n, n - 1 if n else None, n, n + 1, schedule, 1))
        events.append(Observed(n, n, n + 1, (n + 1,), {"raw": (1.0 / (n + 1),)}))
    view = read(events)
    assert len(view.whole_run(1_999)[0]) == 2_000
    shown = [curve.fork for curve in curves(view)]
    assert shown == list(range(999, 2_000))  # the latest thousand and the best
    found = lineage(view)
    assert found is not None
    assert (len(found.bars), found.left_out) == (1_001, 999)
