"""Colours on light and dark pages."""

import json
import sys

import pytest

from paceline import InputError
from paceline.views.figures import FIGURES
from paceline.views.figures.style import DARK, DARK_COLOURS, LIGHT, recolour
from paceline.views.projection import study_view
from tests.views.studies import STUDY


def test_recolouring_can_be_undone() -> None:
    figure = FIGURES["traces"](study_view(STUDY))
    assert figure is not None
    dark = recolour(figure, dark=True)
    assert dark.layout.paper_bgcolor == DARK.paper
    assert figure.layout.paper_bgcolor == LIGHT.paper
    assert json.loads(recolour(dark, dark=False).to_json()) == json.loads(recolour(figure, dark=False).to_json())
    assert [list(t.x) for t in dark.data] == [list(t.x) for t in figure.data]


def test_no_two_colours_of_a_palette_are_equal() -> None:
    assert len({colour.lower() for colour in LIGHT}) == len(LIGHT) == len({colour.lower() for colour in DARK})
    assert len(DARK_COLOURS) == len(LIGHT)


def test_without_plotly_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(InputError, match=r"pip install 'paceline\[plot\]'"):
        FIGURES["traces"](study_view(STUDY))
