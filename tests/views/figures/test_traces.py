"""Values and rates of forks."""

import numpy as np
import pytest

from paceline.study import Created
from paceline.views.figures.traces import traces
from paceline.views.projection import study_view
from tests.views.studies import KEPT, STUDY, golden
from tests.views.test_curves import chain_of_clones


def by_name(figure: object) -> dict[str, list]:
    """Traces of a figure by their name: one in each panel."""
    named: dict[str, list] = {}
    for trace in figure.data:  # type: ignore[attr-defined]
        named.setdefault(trace.name, []).append(trace)
    return named


def test_values_and_rates_are_on_one_axis_of_steps() -> None:
    figure = traces(study_view(STUDY))
    assert figure.layout.xaxis.matches == "x2" or figure.layout.xaxis2.matches == "x"
    named = by_name(figure)
    values, rates = named["fork 2 won"]
    assert (list(values.x), list(values.y)) == ([10, 20, 60, 100], [2.2, 1.6, 0.8, 0.45])
    assert values.line.width > 2 * named["1 dropped"][0].line.width
    assert rates.yaxis == "y2"
    schedule = study_view(STUDY).fork(2).schedule
    assert np.interp([5.5, 30.5, 99], rates.x, rates.y) == pytest.approx(schedule(np.array([5.5, 30.5, 99])), rel=1e-6)
    assert list(named["clone begins"][0].x) == [20]


def test_failed_forks_are_dashed_and_end_in_a_cross() -> None:
    figure = traces(study_view(STUDY))
    failed = by_name(figure)["1 failed"][0]
    assert (failed.line.dash, list(failed.x), list(failed.y)) == ("dash", [10, 20, 60], [2.2, 1.6, 0.9])
    (crosses,) = [trace for trace in figure.data if trace.marker.symbol == "x"]
    assert (list(crosses.x), list(crosses.y), list(crosses.customdata)) == ([60], [0.9], [0])


def test_lines_of_one_state_are_one_trace_with_gaps() -> None:
    events = golden("journal-1")
    view = study_view(events)
    dropped = [fork for fork in view.forks if fork.state == "dropped"]
    (values, _) = by_name(traces(view))[f"{len(dropped)} dropped"]
    assert list(values.x).count(None) == len(dropped) - 1
    assert {number for number in values.customdata if number is not None} == {fork.fork for fork in dropped}


def test_runs_of_a_family_have_the_colour_of_their_task_and_its_name_is_text() -> None:
    created, *rest = golden("journal-1-family")
    assert isinstance(created, Created)
    first, second, *_ = created.settings["tasks"]
    named = by_name(traces(study_view([Created({**created.settings, "tasks": ["R&D <x>", second]}), *rest])))
    assert first not in named
    own = named["R&amp;D &lt;x&gt;"]
    assert {trace.line.color for trace in own}.isdisjoint({trace.line.color for trace in named[second]})
    assert {trace.legendgroup for trace in own} == {"task 0"}
    assert all("R&amp;D" not in trace.hovertemplate for trace in own)  # plotly's templates must not read it


def test_a_long_study_says_how_many_forks_are_omitted() -> None:
    figure = traces(study_view(chain_of_clones(1_200)))
    assert figure.layout.meta == "199 earlier ones are omitted"


def test_a_star_marks_the_best_moment_and_turned_forks_are_dotted() -> None:
    named = by_name(traces(study_view(KEPT)))
    (star,) = named["best moment, averaged weights"]
    assert (star.x, star.y, star.marker.symbol) == ((60,), (0.8,), "star")
    assert named["1 turned for the worse"][0].line.dash == "dot"
    assert not any("best moment" in (name or "") for name in by_name(traces(study_view(STUDY))))
