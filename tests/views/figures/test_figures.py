"""Every figure of every golden journal, finished or not."""

import json
from pathlib import Path

import pytest

from paceline.study import Event, read_journal
from paceline.views.figures import FIGURES, Figure
from paceline.views.projection import study_view
from tests.views.studies import GOLDEN, STUDY

JOURNALS = sorted(GOLDEN.glob("journal*.jsonl"))
FIGURES_OF = {
    "journal-1": {"traces", "lineage"},
    "journal-2": {"traces", "lineage"},
    "journal-3": {"traces", "lineage"},
    "journal-1-family": {"traces", "lineage", "forecasts", "embedding", "calibration"},
    "journal-1-greedy": {"traces", "lineage", "forecasts", "surface", "failure", "calibration"},
}


def figures_of(events: list[Event]) -> dict[str, Figure]:
    """All figures that a study has, by name."""
    view = study_view(events)
    return {name: figure for name, draw in FIGURES.items() if (figure := draw(view)) is not None}


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_every_golden_journal_has_its_figures(path: Path) -> None:
    figures = figures_of(read_journal(path))
    assert set(figures) == FIGURES_OF[path.stem]
    for figure in figures.values():
        assert figure.layout.title.text
        json.loads(figure.to_json())


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: path.stem)
def test_a_study_can_be_drawn_at_any_time(path: Path) -> None:
    events = read_journal(path)
    for cut in range(0, len(events), max(1, len(events) // 4)):
        figures_of(events[:cut])


@pytest.mark.parametrize("cut", [2, 3, 5, 8, 10, 11])
def test_a_figure_appears_as_soon_as_it_has_something_to_show(cut: int) -> None:
    assert set(figures_of(STUDY[:cut])) == {
        *(["lineage"] if cut > 2 else []),
        *(["traces"] if cut > 4 else []),
        *(["forecasts"] if cut > 9 else []),
        *(["calibration"] if cut > 10 else []),
    }
