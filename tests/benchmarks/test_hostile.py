"""Studies of a stranger, as the benchmark makes them: some of them here, all of one study with `make slow`."""

import os
from pathlib import Path

import pytest

from benchmarks._hostile_studies import TEXTS, Variation, variations, write_variation
from benchmarks.hostile import Outcome, outcomes, problems_with, sound_study, with_progress

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="pipes and alarms are those of POSIX"),
    pytest.mark.filterwarnings("ignore"),  # a study with odd settings may warn
]
SOME = (
    "journal.jsonl created.settings.strategy.strategy = '\"><img",
    "journal.jsonl decided.reasons.*.kind = '\\x1b]0",
    'journal.jsonl proposed.schedule.base.name = "__import__',
    "journal.jsonl is a pipe",
    "journal.jsonl is without an end",
    "journal.jsonl has a deep line",
    "study.json is a link that leads out",
    "all checkpoints are a pickle",
    "all checkpoints are an archive with a pickle",
    "all checkpoints are a pipe",
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sound_study(tmp_path_factory.mktemp("hostile") / "sound")


def test_there_are_many_variations_in_a_fixed_order(study: Path) -> None:
    names = [variation.name for variation in variations(study)]
    assert len(names) > 400
    assert names == [variation.name for variation in variations(study)]
    assert {name.split()[0] for name in names} >= {"study.json", "journal.jsonl", "known.jsonl", "lock", "all"}


def test_a_variation_changes_a_copy(study: Path, tmp_path: Path) -> None:
    variation = next(v for v in variations(study) if v.name.startswith("journal.jsonl decided.reasons.*.kind"))
    before = (study / "journal.jsonl").read_text()
    write_variation(study, tmp_path / "copy", variation)
    assert (study / "journal.jsonl").read_text() == before
    assert TEXTS[0].replace('"', '\\"') in (tmp_path / "copy" / "journal.jsonl").read_text()


@pytest.mark.parametrize("name", SOME)
def test_some_are_handled(study: Path, name: str) -> None:
    variation = next(variation for variation in variations(study) if variation.name.startswith(name))
    assert problems_with(study, variation, whole=False) == []


@pytest.mark.slow
def test_all_are_handled(study: Path) -> None:
    found = list(outcomes([study], every=1, jobs=os.cpu_count() or 1))
    assert len(found) == len(variations(study))
    assert [outcome for outcome in found if outcome.problems] == []


def test_a_variation_that_is_mishandled_is_found(study: Path) -> None:
    def write_outside(folder: Path) -> None:
        (folder / "../../../../hacked").write_text("")

    found = problems_with(study, Variation("a file above it", write_outside), whole=False)
    assert [problem for problem in found if problem.startswith("made ")] != []


def test_progress_is_printed_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    sound, mishandled = Outcome("family", "lock is deep", [], 0.1), Outcome("family", "\x1b", ["show: raised"], 0.1)
    came = with_progress([mishandled, *[sound] * 99], 100)
    assert next(came) == mishandled
    first = capsys.readouterr().err
    assert first.startswith("1 of 100 after 0 s")
    assert "\\x1b" in first
    assert len(list(came)) == 99
    assert capsys.readouterr().err.startswith("100 of 100")
