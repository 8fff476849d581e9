"""Figures: drawn for every kind of study, finished or not, with the journal's numbers and no trust in its words."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from paceline import InputError, Schedule, Study
from paceline.study import Created, Event, read_journal
from paceline.tuner import Tuner
from paceline.views.data import read
from paceline.views.figures import DARK_FOR, FIGURES, costs, style
from paceline.views.figures.style import DARK, LIGHT
from tests.tuner.toy_study import drive, make
from tests.views.test_data import STUDY
from tests.views.test_figure_data import GOLDEN, golden

JOURNALS = sorted(GOLDEN.glob("journal*.jsonl"))
SHOWS = {
    "journal-1": {"traces", "lineage"},
    "journal-1-family": {"traces", "lineage", "forecasts", "embedding", "calibration"},
    "journal-1-greedy": {"traces", "lineage", "forecasts", "surface", "failure", "calibration"},
}


def drawn(events: list[Event]) -> dict:
    view = read(events)
    return {name: figure for name, draw in FIGURES.items() if (figure := draw(view)) is not None}


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_every_golden_journal_draws_what_it_has(path: Path) -> None:
    figures = drawn(read_journal(path))
    assert set(figures) == SHOWS[path.stem]
    for figure in figures.values():
        assert figure.layout.title.text
        json.loads(figure.to_json())


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_studies_draw_at_every_point_while_they_run(path: Path) -> None:
    events = read_journal(path)
    for cut in range(0, len(events), max(1, len(events) // 4)):
        drawn(events[:cut])


@pytest.mark.parametrize("cut", [2, 3, 5, 8, 11, 12])
def test_a_study_draws_as_soon_as_there_is_something_to_draw(cut: int) -> None:
    assert set(drawn(STUDY[:cut])) == {
        *(["lineage"] if cut > 2 else []),
        *(["traces"] if cut > 4 else []),
        *(["forecasts"] if cut > 10 else []),
        *(["calibration"] if cut > 11 else []),
    }


def test_traces_hold_what_was_observed_on_one_axis_of_steps() -> None:
    figure = drawn(STUDY)["traces"]
    assert figure.layout.xaxis.matches == "x2" or figure.layout.xaxis2.matches == "x"
    by_name = {}
    for trace in figure.data:
        by_name.setdefault(trace.name, []).append(trace)
    won, rates = by_name["fork 2 won"]
    assert (list(won.x), list(won.y)) == ([10, 20, 60, 100], [2.2, 1.6, 0.8, 0.45])
    assert won.line.width > 2 * by_name["1 dropped"][0].line.width
    failed = by_name["1 failed"][0]
    assert (failed.line.dash, list(failed.x), list(failed.y)) == ("dash", [10, 20, 60], [2.2, 1.6, 0.9])
    assert rates.yaxis == "y2"
    schedule = read(STUDY).fork(2).schedule
    assert np.interp([5.5, 30.5, 99], rates.x, rates.y) == pytest.approx(schedule(np.array([5.5, 30.5, 99])), rel=1e-6)
    assert list(by_name["clone begins"][0].x) == [20]


def test_lineage_and_failure_and_surface_hold_the_journals_numbers() -> None:
    events = golden("journal-1-greedy")
    view, figures = read(events), drawn(events)
    bars = figures["lineage"].data[0]
    assert sorted(set(bars.text), key=int) == [str(fork.fork) for fork in view.forks]
    rates = {rate for fork in view.forks for rate in fork.schedule.multipliers.tolist()}
    assert {fork.multiplier for fork in view.forks} <= set(bars.customdata) <= rates
    last = [d for d in view.decisions if "surface" in d.details][-1].details["surface"]
    shown = [t for t in figures["surface"].data if t.visible and t.type == "heatmap"]
    assert [[list(row) for row in t.z] for t in shown] == [last["latents"][0][key] for key in ("mean", "deviation")]
    (shown,) = [t for t in figures["failure"].data if t.visible and t.type == "heatmap"]
    assert [list(row) for row in shown.z] == last["p_fail"]
    assert len(figures["failure"].layout.sliders[0].steps) == 3


def test_older_journals_without_a_grid_of_failures_show_them_by_decision() -> None:
    events = golden("journal-1-greedy")
    for event in events:
        getattr(event, "details", {}).get("surface", {}).pop("p_fail", None)
    figure = drawn(events)["failure"]
    heat, view = figure.data[0], read(events)
    told = [d.details["p_fail"][0] for d in view.decisions if "p_fail" in d.details]
    assert np.shape(heat.z)[1] == len(told)
    for k, line in enumerate(told):
        known = dict(zip(line["rates"], line["probability"], strict=True))
        assert [row[k] for row in heat.z] == [known[rate] for rate in heat.y]


def test_forecasts_show_bands_as_journaled_and_a_slider_over_decisions() -> None:
    events = golden("journal-1-greedy")
    figure, view = drawn(events)["forecasts"], read(events)
    told = next(d for d in view.decisions if "forecast" in d.details).details["forecast"]
    band = figure.data[0]
    assert {*told[0]["low"], *told[0]["high"]} <= set(band.y)
    slider = figure.layout.sliders[0]
    assert [step.label.split(",")[0] for step in slider.steps] == ["all", "2", "3", "4"]
    assert all(len(step.args[0]["visible"]) == len(figure.data) for step in slider.steps)


def test_calibration_marks_the_three_journaled_levels() -> None:
    figure = drawn(STUDY)["calibration"]
    journaled = next(trace for trace in figure.data if trace.name == "journaled")
    assert (list(journaled.x), list(journaled.y)) == ([0.05, 0.5, 0.95], [0.0, 0.0, 0.0])
    assert any("0 % of 2 inside" in note.text for note in figure.layout.annotations)


def test_costs_of_studies_side_by_side() -> None:
    figure = costs({"<i>mine</i>": read(STUDY), "unfinished": read(STUDY[:11]), "new": read([])})
    ends = {trace.name: trace for trace in figure.data if trace.mode == "markers"}
    end = ends["&lt;i&gt;mine&lt;/i&gt;"]
    assert (list(end.x), list(end.y), end.marker.symbol) == ([1.6], [0.45], "circle")
    assert ends["unfinished"].marker.symbol == "circle-open"


def test_words_of_a_journal_are_never_markup() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    events = [
        Created({**e.settings, "tasks": ["calm", hostile]}) if isinstance(e, Created) else e
        for e in golden("journal-1-family")
    ]
    text = json.dumps({name: json.loads(figure.to_json()) for name, figure in drawn(events).items()})
    assert "<img" not in text
    assert "&lt;img src=x" in text


def test_style_exchanges_colours_and_gives_them_back() -> None:
    figure = drawn(STUDY)["traces"]
    dark = style(figure, dark=True)
    assert dark.layout.paper_bgcolor == DARK.paper
    assert figure.layout.paper_bgcolor == LIGHT.paper
    assert json.loads(style(dark, dark=False).to_json()) == json.loads(style(figure, dark=False).to_json())
    assert [list(t.x) for t in dark.data] == [list(t.x) for t in figure.data]
    assert len({colour.lower() for colour in LIGHT}) == len(LIGHT) == len({colour.lower() for colour in DARK})
    assert len(DARK_FOR) == len(LIGHT)


def test_results_and_studies_plot_themselves(tmp_path: Path) -> None:
    tuner: Tuner = drive(make("horizon", study=tmp_path))
    tuner.close()
    figure = tuner.result.plot()
    winner = next(trace for trace in figure.data if trace.name == f"fork {tuner.result.fork} won")
    assert winner.x[-1] == 400
    study = Study.open(tmp_path)
    assert json.loads(study.plot().to_json()) == json.loads(figure.to_json())
    assert study.plot.lineage(dark=True).layout.paper_bgcolor == DARK.paper
    with pytest.raises(InputError, match="no surface to show: expected decisions that were made with a trace model"):
        study.plot.surface()


def test_without_plotly_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(InputError, match=r"pip install 'paceline\[plot\]'"):
        FIGURES["traces"](read(STUDY))


def test_a_schedule_draws_its_rates_with_their_corners() -> None:
    drawn = Schedule([1e-2, 1e-3], [0, 50, 100]).plot()
    (line,) = drawn.data
    assert list(zip(line.x, line.y, strict=True)) == [(0, 1e-2), (50, 1e-2), (50, 1e-3), (100, 1e-3)]
    assert drawn.layout.yaxis.type == "log"
    faded = Schedule.of("linear", 1e-2, 1_000).plot(dark=True)
    assert faded.layout.paper_bgcolor == DARK.paper
    assert 10 ** faded.layout.yaxis.range[0] > 1e-7  # what decays to zero does not flatten the rest
