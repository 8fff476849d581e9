"""A study as JSON."""

import json
import math

from paceline.views.json_output import finite_values, study_json
from paceline.views.projection import study_view
from tests.views.studies import KEPT, STUDY, golden


def test_every_study_becomes_json_without_numbers_that_are_not_finite() -> None:
    for events in (golden("journal-1"), golden("journal-2"), golden("journal-1-family"), STUDY, STUDY[:10], []):
        view = study_view(events)
        data = json.loads(json.dumps(study_json(view), allow_nan=False))
        assert data["done_steps"] == view.done_steps
        assert [fork["fork"] for fork in data["forks"]] == [fork.fork for fork in view.forks]
        assert len(data["decisions"]) == len(view.decisions)


def test_forks_and_decisions_hold_data_and_a_sentence() -> None:
    data = study_json(study_view(STUDY))
    failed, dropped, won = data["forks"]
    assert failed["failure"] == {"kind": "not finite", "step": 60}
    assert failed["values"]["raw"] == [2.0, 1.5, None]
    assert dropped["drop"] == {"kind": "behind", "value": 1.8}
    assert dropped["reason"] == "its value 1.8 is behind"
    assert (won["state"], won["forecast"]) == ("won", None)
    assert data["best"] == {"fork": 2, "values": {"raw": 0.5, "averaged": 0.45}}
    assert (data["kept"], data["saved_steps"]) == (None, 0)
    (ended,) = data["decisions"][2]["reasons"]
    assert (ended["kind"], ended["fork"], ended["value"]) == ("ended best", 2, 0.45)
    assert ended["sentence"].startswith("fork 2 ended best")


def test_a_family_has_answers_best_runs_and_an_embedding() -> None:
    data = study_json(study_view(golden("journal-1-family")))
    assert data["tasks"] == ["calm", "wild"]
    assert set(data["answers"]) == {"calm", "wild"}
    assert set(data["embedding"]) <= {"calm", "wild", "log"}


def test_finite_values() -> None:
    assert finite_values({"raw": (1.0, math.nan, math.inf)}) == {"raw": [1.0, None, None]}


def test_the_best_moment_is_plain_data() -> None:
    data = json.loads(json.dumps(study_json(study_view(KEPT))))
    assert data["kept"] == {"fork": 2, "step": 60, "value": 0.8, "weights": "averaged"} == data["forks"][2]["kept"]
    assert data["forks"][0]["state"] == "turned"
    assert data["saved_steps"] == 20
