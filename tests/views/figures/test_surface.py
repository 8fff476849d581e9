"""Grids of latent functions, with a slider over decisions."""

from paceline.views.figures.surface import surface
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_the_latest_decision_is_shown_as_in_the_journal() -> None:
    view = study_view(golden("journal-1-greedy"))
    figure = surface(view)
    decisions = [d for d in view.decisions if "surface" in d.details]
    last = decisions[-1].details["surface"]
    shown = [trace for trace in figure.data if trace.visible and trace.type == "heatmap"]
    assert [[list(row) for row in trace.z] for trace in shown] == [
        latent[key] for latent in last["latents"] for key in ("mean", "deviation")
    ]
    (slider,) = figure.layout.sliders
    assert slider.active == len(slider.steps) - 1 == len(decisions) - 1
    assert list(slider.steps[-1].args[0]["visible"]) == [trace.visible for trace in figure.data]
    assert surface(study_view(STUDY)) is None
