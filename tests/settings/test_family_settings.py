"""The settings of a family of tasks: derived values, and plain data."""

import json
import subprocess
import sys

import pytest

from paceline.errors import InputError
from paceline.model import Signed
from paceline.settings import FamilySettings, InfillBudget, SearchBudget
from paceline.shapes import HOLD_THEN_DECAY, Linear


def test_weights_follow_the_base() -> None:
    assert FamilySettings().judged_weights == "raw"
    assert FamilySettings(base="horizon").judged_weights == "averaged"
    assert FamilySettings(base="horizon", weights="raw").judged_weights == "raw"
    assert FamilySettings(base="horizon").base_shape == HOLD_THEN_DECAY


def test_settings_survive_json() -> None:
    settings = FamilySettings(
        intervals=3,
        base=Linear(),
        link=Signed(),
        search=SearchBudget(draws=4),
        infill_search=InfillBudget(candidates=9),
        initial=2,
    )
    data = json.loads(json.dumps(settings.to_json()))
    again = FamilySettings.from_json(data)
    assert again.to_json() == data
    assert (again.intervals, again.initial, again.base) == (3, 2, Linear())
    assert (again.search, again.infill_search) == (settings.search, settings.infill_search)
    assert (again.link, again.weights) == ("signed", "averaged")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"weights": "both"}, 'weights must be "raw" or "averaged"'),
        ({"infill": "greedy"}, 'infill must be "variance" or "optimistic", got \'greedy\''),
        ({"alpha": 1.0}, r"alpha must lie in \(0, 1\), got 1"),
        ({"order": 4}, "order must be 1 or 2 or 3, got 4"),
        ({"dims": -1}, "dims must be at least 0, got -1"),
    ],
)
def test_what_is_refused(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FamilySettings(**values)


def test_they_are_light_to_import() -> None:
    """The command line reads them to print its help."""
    code = "import sys, paceline.settings; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_alpha_that_grows_approaches_one_and_is_kept_in_a_journal_only_then() -> None:
    constant, growing = FamilySettings(alpha=0.8), FamilySettings(alpha=0.8, alpha_grows=True)
    assert [constant.alpha_after(runs, 2) for runs in (0, 20)] == [0.8, 0.8]
    assert [growing.alpha_after(runs, 2) for runs in (0, 2, 4, 20)] == pytest.approx([0.8, 0.8, 0.9, 0.98])
    assert "alpha_grows" not in constant.to_json()
    assert FamilySettings.from_json(json.loads(json.dumps(growing.to_json()))).alpha_grows


def test_a_study_without_an_end_share_was_fitted_to_every_observation() -> None:
    every = FamilySettings(end_share=1).to_json()
    assert "end_share" not in every
    assert FamilySettings.from_json(every).end_share == 1
    assert FamilySettings.from_json(FamilySettings(end_share=0.4).to_json()).end_share == 0.4


def test_what_is_known_of_tasks_is_kept_in_a_journal_only_if_given() -> None:
    plain = FamilySettings().to_json()
    assert not {"at", "costs", "wanted"} & set(plain)
    settings = FamilySettings(
        budget=2.5, at={"b": {"rows": 5}, "a": {"rows": 50}}, costs={"a": 1, "b": 0.25}, wanted=["a"]
    )
    again = FamilySettings.from_json(json.loads(json.dumps(settings.to_json())))
    assert again.to_json() == json.loads(json.dumps(settings.to_json())) | {"wanted": ("a",)}
    assert (again.budget, again.wanted) == (2.5, ("a",))
    assert again.at == {"a": {"rows": 50.0}, "b": {"rows": 5.0}}
    with pytest.raises(InputError, match="must have the same coordinates, rows, got cols for 'b'"):
        FamilySettings(at={"a": {"rows": 1}, "b": {"cols": 2}})
