"""What views show of a decision: forecasts and the latent surface, from the model that was fitted for it."""

import json

import numpy as np
import pytest

from paceline.strategy import Dynamic
from paceline.strategy.details import round_floats
from paceline.study import Decided, Interval
from paceline.study.events import to_json
from paceline.tuner import Tuner
from tests.tuner.toy_study import drive, loss, make


@pytest.mark.parametrize("name", ["model", "greedy", "model-5"])
def test_a_decision_has_a_forecast_for_each_interval_and_a_surface(name: str) -> None:
    events = []
    drive(make(name, on_event=events.append))
    fitted = [e for e in events if isinstance(e, Decided) and "surface" in e.details]
    assert fitted
    for decided in fitted:
        proposed = {e.fork: e for e in events if isinstance(e, Interval) and e.round == decided.round}
        assert [f["fork"] for f in decided.details["forecast"]] == list(proposed)
        for band in decided.details["forecast"]:
            assert proposed[band["fork"]].start < band["steps"][0]
            assert band["steps"][-1] == proposed[band["fork"]].stop
            assert (np.array(band["low"]) <= np.array(band["median"])).all()
            assert (np.array(band["median"]) <= np.array(band["high"])).all()
        surface = decided.details["surface"]
        shape = (len(surface["values"]), len(surface["rates"]))
        assert all(np.shape(latent[key]) == shape for latent in surface["latents"] for key in ("mean", "deviation"))
        assert min(np.min(latent["deviation"]) for latent in surface["latents"]) > 0
        assert len(json.dumps(to_json(decided))) < 50_000


def test_after_a_failure_the_surface_holds_its_probability() -> None:
    """Over the grid, and the same as the classifier gives for the candidates at the value of their parent."""
    events = []
    strategy = Dynamic.greedy(forks=3, intervals=4)
    tuner = Tuner(lr=(1e-4, 1e-1), steps=400, strategy=strategy, on_event=events.append)
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            steps, values = loss(interval)
            if interval.multiplier > 0.03:
                tuner.fail(interval, "too fast", steps[:2], {name: column[:2] for name, column in values.items()})
            else:
                tuner.tell(interval, steps, values)
    decided = [e for e in events if isinstance(e, Decided) and "surface" in e.details]
    assert {("p_fail" in e.details["surface"]) == ("p_fail" in e.details) for e in decided} == {True}
    failing = [e.details for e in decided if "p_fail" in e.details]
    assert failing
    for details in failing:
        grid = np.array(details["surface"]["p_fail"])
        assert grid.shape == (len(details["surface"]["values"]), len(details["surface"]["rates"]))
        assert ((grid >= 0) & (grid <= 1)).all()
        values = details["surface"]["values"]
        assert all(
            min(values) <= 1.0001 * row["value"] and row["value"] <= 1.0001 * max(values) for row in details["ranking"]
        )
    details = failing[-1]
    at, rates, values = details["p_fail"][0], details["surface"]["rates"], details["surface"]["values"]
    column = [np.interp(np.log(at["rates"]), np.log(rates), row) for row in details["surface"]["p_fail"]]
    ranked = details["ranking"][0]["value"]
    order = np.argsort(values)
    asked = [np.interp(ranked, np.array(values)[order], np.array(p)[order]) for p in np.transpose(column)]
    assert np.abs(np.array(asked) - at["probability"]).max() < 0.05  # linear between the points of the grid


def test_bands_of_a_smooth_toy_run_hold_the_values_that_followed() -> None:
    events = []
    tuner = drive(make("model", on_event=events.append))
    inside = []
    for decided in (e for e in events if isinstance(e, Decided)):
        for band in decided.details.get("forecast", []):
            trace = next(fork.trace for fork in tuner.history.forks if fork.id == band["fork"])
            assert trace is not None
            seen = np.interp(band["steps"], trace.steps, trace.values)
            inside += [low <= v <= high for low, v, high in zip(band["low"], seen, band["high"], strict=True)]
    assert np.mean(inside) > 0.6


def test_decisions_by_a_fixed_factor_have_no_model_to_show() -> None:
    events = []
    drive(make("horizon", on_event=events.append))
    assert all("surface" not in e.details for e in events if isinstance(e, Decided))
    assert Dynamic.horizon().chooser.name == "fixed factor"


def test_numbers_are_rounded_to_six_digits() -> None:
    data = {"a": np.array([[1.23456789e-7, 123456789.0]]), "b": (True, 3, "x"), "c": np.array([True])}
    assert round_floats(data) == {"a": [[1.23457e-07, 123457000.0]], "b": [True, 3, "x"], "c": [True]}
