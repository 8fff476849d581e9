"""A plan as plain data."""

import json

from paceline.traces import Schedule
from paceline.views.plan import plan_json
from tests.views.plans import SCHEDULE, VIEW


def test_scripts_get_the_plan_as_plain_data() -> None:
    data = json.loads(json.dumps(plan_json(VIEW)))
    assert data["plan"]["median"] == 0.4
    assert data["forecast"]["high"] == [2.2, 1.0, 0.45]
    assert data["runs"] == 2
    assert [forecast["name"] for forecast in data["usual"]] == ["cosine", "constant"]
    assert data["recorded"][0]["value"] == 0.52
    assert "best" not in data
    assert Schedule.from_json(data["schedule"]) == SCHEDULE
