import json

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.study import Failure, Reason, as_failure, as_reason, because


def test_numbers_are_those_that_json_holds() -> None:
    reason = because("clone", fork=np.int64(3), rate=np.float64(0.1), rates=[np.float32(0.5)], value=float("nan"))
    assert reason.data == {"fork": 3, "rate": 0.1, "rates": [0.5], "value": None}
    assert all(type(value) in (int, float, list, type(None)) for value in reason.data.values())


def test_a_reason_within_a_reason_goes_to_json_and_back() -> None:
    reason = because("clone", fork=8, parent=5, rate=0.1, why=because("unsure", instead=because("as before")))
    assert Reason.from_json(json.loads(json.dumps(reason.to_json()))) == reason
    assert reason["why"]["instead"].kind == "as before"


def test_a_sentence_is_a_reason_and_a_failure() -> None:
    assert as_reason("enough") == because("text", text="enough")
    assert as_reason(because("start", rates=[])) == because("start", rates=[])
    assert as_failure("too hot") == Failure("raised", "too hot")


def test_a_failure_goes_to_json_without_its_exception() -> None:
    failure = Failure("raised", "ValueError: bad", "train.py, line 3", error=ValueError("bad"))
    again = Failure.from_json(json.loads(json.dumps(failure.to_json())))
    assert again == failure
    assert again.error is None


def test_kinds_of_failures_are_known() -> None:
    assert [Failure(kind).is_unsound_value for kind in ("diverged", "not finite", "raised", "lost")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(InputError, match=r"kind must be one of diverged, not finite, raised.* got 'sad'"):
        Failure("sad")


@pytest.mark.parametrize("best", [1, 0.25])
def test_a_reason_comes_back_as_it_was(best: float) -> None:
    """The same field may be a fork or a value."""
    data = json.loads(json.dumps(because("expected to end worse", best=best).to_json()))
    assert repr(Reason.from_json(data)) == repr(because("expected to end worse", best=best))
