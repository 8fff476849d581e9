"""What a study found, and how it prints."""

import re
from dataclasses import replace
from pathlib import Path

from tests.tuner.toy_study import drive, make


def test_results_and_studies_are_one_line_when_printed(tmp_path: Path) -> None:
    tuner = make("horizon", study=tmp_path)
    assert re.fullmatch(r"Study\('.*', \d+ events, not over\)", repr(tuner.study))
    result = drive(tuner).result
    tuner.close()
    assert re.fullmatch(r"Result\(value=[\d.e-]+, value_of='averaged', fork=\d+, step=400, steps=400\)", repr(result))
    assert "finished" in repr(result.study)
    assert repr(replace(result, fork=None, advice="lower it")) == "Result(no fork reached the end: lower it)"
