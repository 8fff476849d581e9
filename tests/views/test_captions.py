"""Captions of figures."""

from paceline.views.captions import CAPTIONS
from paceline.views.figures import FIGURES


def test_every_figure_has_a_caption() -> None:
    assert set(CAPTIONS) == {*FIGURES, "costs"}
    assert all(caption.heading and caption.text.endswith(".") for caption in CAPTIONS.values())
