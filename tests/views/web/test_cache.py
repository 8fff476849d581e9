"""Answers that are kept until a study grows."""

from paceline.views.web.cache import AnswerCache


def test_an_answer_is_made_once_for_each_revision() -> None:
    cache, made = AnswerCache(), list[str]()

    def make(text: str) -> bytes:
        made.append(text)
        return text.encode()

    for _ in range(3):
        assert cache.get("a", 1, lambda: make("one")) == b"one"
    assert cache.get("a", 2, lambda: make("two")) == b"two"
    assert cache.get("b", 2, lambda: make("other")) == b"other"
    assert cache.get("a", 2, lambda: make("never")) == b"two"
    assert made == ["one", "two", "other"]


def test_what_was_used_longest_ago_goes_first() -> None:
    cache = AnswerCache(max_bytes=10)
    cache.get("a", 1, lambda: b"12345")
    cache.get("b", 1, lambda: b"12345")
    cache.get("a", 1, lambda: b"never")
    cache.get("c", 1, lambda: b"12345")
    assert cache.get("a", 1, lambda: b"again") == b"12345"
    assert cache.get("b", 1, lambda: b"again") == b"again"


def test_there_is_a_limit_of_bytes_and_of_answers() -> None:
    cache = AnswerCache(max_bytes=10)
    assert cache.get("large", 1, lambda: b"1" * 11) == b"1" * 11
    assert cache.get("large", 1, lambda: b"2") == b"2", "what is larger than the cache is not kept"
    few = AnswerCache(max_answers=1)
    few.get("a", 1, lambda: b"1")
    few.get("b", 1, lambda: b"1")
    assert few.get("a", 1, lambda: b"2") == b"2"
