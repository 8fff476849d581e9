"""The figures of a study by name."""

import json
from functools import partial
from pathlib import Path

import pytest

import paceline
from paceline import InputError, Study
from paceline.problems import Quadratic, QuadraticTraining
from paceline.views.figures import FIGURES
from paceline.views.figures.style import DARK
from paceline.views.plots import _NEEDS, Plots
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_there_is_a_method_for_each_figure() -> None:
    plots = Plots(study_view(golden("journal-1-greedy")))
    for name, draw in FIGURES.items():
        figure = draw(plots.view)
        if figure is not None:
            method = getattr(plots, name)
            assert json.loads(method().to_json()) == json.loads(figure.to_json())
            assert method(dark=True).layout.paper_bgcolor == DARK.paper
    assert set(_NEEDS) == set(FIGURES)


def test_a_figure_without_content_says_what_it_needs() -> None:
    with pytest.raises(InputError, match="nothing to show in 'surface', which needs decisions made with a trace model"):
        Plots(study_view(STUDY)).surface()


def test_results_and_studies_have_plots(tmp_path: Path) -> None:
    training = partial(QuadraticTraining, Quadratic(dims=5))
    result = paceline.tune(training, steps=40, lr=(0.01, 1.0), study=tmp_path / "study")
    figure = result.plot()
    winner = next(trace for trace in figure.data if trace.name == f"fork {result.fork} won")
    assert winner.x[-1] == 40
    assert json.loads(Study.open(tmp_path / "study").plot().to_json()) == json.loads(figure.to_json())
