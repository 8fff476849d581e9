"""Batches in groups, one group an update: where gradients are accumulated over several."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any


class Windows:
    """Goes through batches in lists of `size`; the last of a pass may be shorter.

    Args:
        batches: a DataLoader or any iterable that can be gone through again.
        size: batches of one update.
    """

    def __init__(self, batches: Iterable[Any], size: int) -> None:
        self.batches, self.size = batches, size

    def __iter__(self) -> Iterator[list[Any]]:
        going = iter(self.batches)
        while window := list(islice(going, self.size)):
            yield window
