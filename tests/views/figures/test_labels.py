"""Text in figures is escaped, once."""

import json
from html import unescape

import pytest

from paceline.study import Created
from paceline.views.figures import FIGURES
from paceline.views.figures.labels import label, weights_label
from paceline.views.projection import study_view
from tests.views.studies import golden, with_text


@pytest.mark.parametrize("text", ["R&D <x>", "<script>alert(1)</script>", "a < b & c > d", "&amp;", "plain"])
def test_a_label_reads_as_the_text(text: str) -> None:
    assert "<" not in label(text)
    assert unescape(label(text)) == text


def test_long_labels_are_shortened_before_they_are_escaped() -> None:
    assert label("&" * 100) == "&amp;" * 67 + "..."
    assert len(label("x" * 70)) == 70


def test_the_weights_come_from_the_journal_too() -> None:
    assert weights_label("<b>raw</b>") == "value (&lt;b&gt;raw&lt;/b&gt; weights)"


def test_no_text_of_a_journal_is_markup() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    created, *rest = with_text(golden("journal-1-family"), hostile)
    assert isinstance(created, Created)
    strategy = {**created.settings["strategy"], "weights": hostile}
    events = [Created({**created.settings, "tasks": ["calm", hostile], "strategy": strategy}), *rest]
    view = study_view(events)
    figures = {name: figure for name, draw in FIGURES.items() if (figure := draw(view)) is not None}
    text = json.dumps({name: json.loads(figure.to_json()) for name, figure in figures.items()})
    assert "<img" not in text
    assert "&lt;img src=x" in text
    assert "&amp;lt;" not in text
