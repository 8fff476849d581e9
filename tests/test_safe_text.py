import pytest

from paceline.errors import JournalError
from paceline.safe_text import safe_text


@pytest.mark.parametrize("text", ["", "loss 0.5", "Größe, 学習率, naïve", 'quotes " and \\ stay'])
def test_text_that_prints_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\rb\x00\x7f\x9b", r"a\rb\x00\x7f\x9b"),
        ("\u202etxt.exe\u2066", r"\u202etxt.exe\u2066"),
        ("one\ntwo", r"one\ntwo"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_its_escape(text: str, safe: str) -> None:
    assert safe_text(text) == safe


def test_kept_characters_stay() -> None:
    assert safe_text("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"


def test_errors_quote_a_journal_safely() -> None:
    assert str(JournalError("fork \x1b[2J\nof")) == "fork \\x1b[2J\nof"
