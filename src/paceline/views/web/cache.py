"""Answers to requests, kept for as long as the studies that they are made from do not grow."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

MAX_BYTES, MAX_ANSWERS = 32_000_000, 2_000


class AnswerCache:
    """Answers by request; those used longest ago are forgotten first. Any thread may call it."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_answers: int = MAX_ANSWERS) -> None:
        self._max_bytes, self._max_answers, self._bytes = max_bytes, max_answers, 0
        self._answers: OrderedDict[Hashable, tuple[Hashable, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, request: Hashable, revision: Hashable, make: Callable[[], bytes]) -> bytes:
        """The answer to a request at this revision, made if it is not there."""
        with self._lock:
            known = self._answers.get(request)
            if known is not None and known[0] == revision:
                self._answers.move_to_end(request)
                return known[1]
        answer = make()
        with self._lock:
            self._remove(request)
            self._answers[request] = revision, answer
            self._bytes += len(answer)
            while self._bytes > self._max_bytes or len(self._answers) > self._max_answers:
                self._remove(next(iter(self._answers)))
        return answer

    def _remove(self, request: Hashable) -> None:
        _, answer = self._answers.pop(request, (None, b""))
        self._bytes -= len(answer)
