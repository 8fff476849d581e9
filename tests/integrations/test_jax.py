"""The example with real JAX and optax; and what is said where a package is missing."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from paceline import Tuner


@pytest.mark.parametrize("cost", [1.0, 2.3])
def test_ask_and_tell_find_a_schedule_for_optax(cost: float) -> None:
    optax = pytest.importorskip("optax")
    from examples.jax_optax import VALID, advance, begin, data, loss, tune

    images, labels = data()
    judge = partial(loss, images=images[:VALID], labels=labels[:VALID])
    _, weights = tune(Tuner(lr=(1e-4, 1e-1), steps=200, cost=cost), every=2)
    middle = optax.cosine_decay_schedule(10**-2.5, 200)(np.arange(200))
    assert float(judge(weights)) < float(judge(advance(begin(0), middle, 0, 200, images, labels).weights))


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_where_a_package_is_missing_it_is_named(name: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None\nimport paceline.integrations.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install 'paceline[{name}]'" in done.stderr.splitlines()[-1]
