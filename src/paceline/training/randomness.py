"""Random states: each fork has its own, which is the global one while that fork trains."""

import random
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


class Randomness:
    """The random state of one fork; `state` is plain data and tensors."""

    def __init__(self) -> None:
        self.state = get_random_state()

    @contextmanager
    def activate(self) -> Generator[None]:
        """Use this fork's random state inside the block, and restore the global one afterwards."""
        outside = get_random_state()
        set_random_state(self.state)
        try:
            yield
        finally:
            self.state = get_random_state()
            set_random_state(outside)

    def reseed(self, seed: int) -> None:
        """Start from this seed."""
        outside = get_random_state()
        torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
        np.random.seed(seed % 2**32)  # noqa: NPY002  users' data loaders draw from it
        random.seed(seed)
        self.state = get_random_state()
        set_random_state(outside)


@contextmanager
def preserve_random_state() -> Generator[None]:
    """Restore the global random state after the block, so that an evaluation does not change how a run goes on."""
    before = get_random_state()
    try:
        yield
    finally:
        set_random_state(before)


def get_random_state() -> dict[str, Any]:
    """The state of the global random generators of torch, NumPy and Python."""
    version, words, gauss = random.getstate()
    kind, key, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002  pyright: ignore
    numpy_words = torch.tensor(np.asarray(key).astype(np.int64))
    state: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "numpy": [str(kind), numpy_words, int(position), int(has_gauss), float(cached)],  # pyright: ignore
        "python": [version, torch.tensor(words), gauss],
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def set_random_state(state: dict[str, Any]) -> None:
    """Set the global random generators to a state."""
    torch.set_rng_state(state["torch"])
    kind, key, position, has_gauss, cached = state["numpy"]
    np.random.set_state((kind, key.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    if "cuda" in state and torch.cuda.is_available():
        # the state may come from a machine with more GPUs, or fewer
        for device, device_state in zip(range(torch.cuda.device_count()), state["cuda"], strict=False):
            torch.cuda.set_rng_state(device_state, device)
