"""Cost and value of studies."""

import numpy as np
import pytest

from paceline.views.cost_curves import cost_curves
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_cost_and_value_of_studies_that_are_finished_or_running_and_of_a_family() -> None:
    views = {
        "finished": study_view(STUDY),
        "running": study_view(STUDY[:10]),
        "family": study_view(golden("journal-1-family")),
    }
    finished, running, family = cost_curves(views)
    assert (finished.cost, finished.value, finished.weights, finished.finished) == (1.6, 0.45, "averaged", True)
    assert finished.points == ((0.2, 1.5), (0.4, 1.2), (1.2, 0.45))
    assert (running.value, running.finished) == (1.6, False)
    assert family.cost == 3.0
    best = [run.value for run in study_view(golden("journal-1-family")).best_runs.values()]
    assert family.value == pytest.approx(np.mean(best))
    assert family.points == ()


def test_a_family_has_no_value_until_each_task_has_a_run() -> None:
    view = study_view(golden("journal-1-family"))
    first = dict([next(iter(view.best_runs.items()))])
    (curve,) = cost_curves({"family": view._replace(best_runs=first)})
    assert curve.value is None
