"""A fork's own randomness: the global random state is swapped in while it trains, and out again."""

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class Randomness:
    """The random state of one fork, as plain data and tensors in `state`."""

    def __init__(self) -> None:
        self.state = global_state()

    @contextmanager
    def taken(self) -> Generator[None]:
        """The global random state is this fork's own inside, and untouched outside."""
        kept = global_state()
        restore(self.state)
        try:
            yield
        finally:
            self.state = global_state()
            restore(kept)

    def reseed(self, seed: int) -> None:
        """Start from this seed."""
        kept = global_state()
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
        np.random.seed(seed % 2**32)  # noqa: NPY002  data loaders of users draw from it
        random.seed(seed)
        self.state = global_state()
        restore(kept)


@contextmanager
def undisturbed() -> Generator[None]:
    """What is drawn inside leaves no trace: a value may be looked at, or not, and the run goes on the same."""
    kept = global_state()
    try:
        yield
    finally:
        restore(kept)


def global_state() -> dict[str, Any]:
    """The state of the global random generators."""
    version, words, gauss = random.getstate()
    kind, key, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002  pyright: ignore
    words_of_numpy = torch.tensor(np.asarray(key).astype(np.int64))
    state: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "numpy": [str(kind), words_of_numpy, int(position), int(has_gauss), float(cached)],  # pyright: ignore
        "python": [version, torch.tensor(words), gauss],
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore(state: dict[str, Any]) -> None:
    """Put the global random generators into a state."""
    torch.set_rng_state(state["torch"])
    kind, key, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, key.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    if "cuda" in state and torch.cuda.is_available():
        for device, own in zip(range(torch.cuda.device_count()), state["cuda"], strict=False):
            torch.cuda.set_rng_state(own, device)  # elsewhere there may be more of them, or fewer
