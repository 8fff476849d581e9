"""Every kind of reason has a sentence, and sentences are told apart by nothing but their kind."""

import ast
from pathlib import Path

import pytest

import paceline
from paceline.study import Failure, because
from paceline.study.wording import SENTENCES, describe, describe_failure

SOURCE = Path(paceline.__file__).parent
FACTOR = because("factor", factor=0.625, fork=5)


def kinds_made() -> set[str]:
    """The kinds that the package gives to `because`."""
    kinds = set[str]()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "because" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    kinds.add(str(first.value))
    return kinds


def test_each_kind_that_is_made_has_a_sentence_and_each_sentence_is_used() -> None:
    assert kinds_made() <= set(SENTENCES)
    assert set(SENTENCES) <= kinds_made()


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        (because("start", rates=[0.1, 0.05]), "2 forks start at 0.1, 0.05"),
        (
            because("clone", fork=8, parent=5, rate=0.1, why=FACTOR),
            "fork 8 starts as a clone of fork 5 at 0.1: 0.62 times the rate of fork 5",
        ),
        (because("behind", value=0.16312), "its value 0.1631 is behind"),
        (
            because("all failed", cause="errors", tries=0, best_state=None),
            "every fork failed: the training raised an error at every rate: fix it, and start again",
        ),
        (because("a kind of my own", depth=3), "a kind of my own: depth 3"),
        (because("text", text="as I said"), "as I said"),
    ],
)
def test_reasons_in_english(reason, sentence: str) -> None:
    assert describe(reason) == sentence


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (Failure("not finite", step=1200), "the value at step 1,200 is not finite"),
        (Failure("diverged", step=12), "the value at step 12 is too large to learn from"),
        (Failure("raised", "ValueError: bad", "train.py, line 3"), "ValueError: bad (train.py, line 3)"),
        (Failure("lost", "3 workers died"), "3 workers died"),
        (Failure("out of memory", "CUDA out of memory"), "out of memory: CUDA out of memory"),
    ],
)
def test_failures_in_english(failure: Failure, sentence: str) -> None:
    assert describe_failure(failure) == sentence
