"""Buttons and sliders."""

import pytest

from paceline.views.figures.controls import decision_slider, scale_buttons


def test_buttons_set_the_scale_of_all_axes_of_steps() -> None:
    linear, log = scale_buttons(("xaxis", "xaxis2"), [0, 20, 100])["buttons"]
    assert linear["args"][0]["xaxis.type"] == linear["args"][0]["xaxis2.type"] == "linear"
    assert log["args"][0]["xaxis.type"] == log["args"][0]["xaxis2.type"] == "log"
    low, high = log["args"][0]["xaxis.range"]
    assert 10**low == pytest.approx(20)
    assert 10**high > 100


def test_a_slider_shows_the_traces_of_one_decision() -> None:
    slider = decision_slider(["1", "2"], [[True, False], [False, True]], active=1)
    assert slider["active"] == 1
    assert [(step["label"], step["args"]) for step in slider["steps"]] == [
        ("1", [{"visible": [True, False]}]),
        ("2", [{"visible": [False, True]}]),
    ]
