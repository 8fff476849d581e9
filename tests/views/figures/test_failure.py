"""P(fail) over a grid, or decision by decision in older journals."""

import numpy as np

from paceline.views.figures.failure import failure
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_the_latest_decision_is_shown_as_in_the_journal() -> None:
    view = study_view(golden("journal-1-greedy"))
    figure = failure(view)
    last = [d for d in view.decisions if "surface" in d.details][-1].details["surface"]
    (shown,) = [trace for trace in figure.data if trace.visible and trace.type == "heatmap"]
    assert [list(row) for row in shown.z] == last["p_fail"]
    assert len(figure.layout.sliders[0].steps) == 3
    assert failure(study_view(STUDY)) is None


def test_older_journals_show_the_rates_that_all_decisions_share() -> None:
    events = golden("journal-1-greedy")
    for event in events:
        getattr(event, "details", {}).get("surface", {}).pop("p_fail", None)
    view = study_view(events)
    heatmap = failure(view).data[0]
    journal = [d.details["p_fail"][0] for d in view.decisions if "p_fail" in d.details]
    assert np.shape(heatmap.z)[1] == len(journal)
    assert len(heatmap.y) > 10
    for k, line in enumerate(journal):
        by_rate = dict(zip(line["rates"], line["probability"], strict=True))
        assert [row[k] for row in heatmap.z] == [by_rate[rate] for rate in heatmap.y]
