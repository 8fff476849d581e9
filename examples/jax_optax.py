"""Tune a JAX training by ask and tell: a proposal's rates become an optax schedule, a fork is a copy of a pytree.

A small network on scikit-learn's digits, in seconds on a CPU. Arrays in JAX never change, so keeping the state of a
fork for its clones costs nothing. Nothing here but the lines in `tune` knows of paceline.

    python -m examples.jax_optax
"""

import argparse
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

import paceline

BATCH, VALID, SHARE = 64, 450, 0.15


class State(NamedTuple):
    """All that decides what comes next."""

    weights: Any
    average: Any  # of the weights, over the last share of the steps
    optimizer: Any
    key: jax.Array


def data() -> tuple[jax.Array, jax.Array]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return jnp.asarray(images[order] / 16.0, jnp.float32), jnp.asarray(labels[order])


def optimizer(rates: jax.Array) -> optax.GradientTransformation:
    """Adam under the optax schedule that looks its rates up."""
    return optax.adam(lambda count: rates[count])


def begin(seed: int, width: int = 64) -> State:
    first, second, key = jax.random.split(jax.random.key(seed), 3)
    draw = jax.nn.initializers.lecun_normal()
    weights = [draw(first, (64, width)), jnp.zeros(width), draw(second, (width, 10)), jnp.zeros(10)]
    return State(weights, weights, optimizer(jnp.ones(1)).init(weights), key)


def loss(weights: Any, images: jax.Array, labels: jax.Array) -> jax.Array:
    inner, bias, outer, last = weights
    logits = jax.nn.relu(images @ inner + bias) @ outer + last
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@jax.jit
def advance(state: State, rates: jax.Array, start: int, stop: int, images: jax.Array, labels: jax.Array) -> State:
    """Updates number `start` to `stop`, each at its own rate."""

    def update(step: jax.Array, now: State) -> State:
        key, draw = jax.random.split(now.key)
        rows = jax.random.randint(draw, (BATCH,), VALID, len(labels))
        gradient = jax.grad(loss)(now.weights, images[rows], labels[rows])
        updates, inside = optimizer(rates).update(gradient, now.optimizer)
        weights = optax.apply_updates(now.weights, updates)
        average = optax.incremental_update(weights, now.average, 1 / (1 + SHARE * step))
        return State(weights, average, inside, key)

    return jax.lax.fori_loop(start, stop, update, state)


def tune(tuner: paceline.Tuner, every: int, seed: int = 0) -> tuple[paceline.Schedule, Any]:
    """Do what the tuner asks for, tell it what came of it; the best schedule and its weights."""
    images, labels = data()
    states: dict[tuple[int, int], State] = {}
    value = jax.jit(lambda weights: loss(weights, images[:VALID], labels[:VALID]))
    while (proposals := tuner.ask()) is not None:
        for p in proposals:
            origin = (p.fork if p.parent is None else p.parent, p.start)
            state = states[origin] if p.start else begin(seed)
            if p.parent is not None:  # a clone sees other batches than its parent
                state = state._replace(key=jax.random.fold_in(state.key, p.fork))
            rates = jnp.asarray(p.schedule(np.arange(tuner.goal.steps)), jnp.float32)
            steps = sorted({*range(p.start + every, p.stop, every), p.stop})
            values: dict[str, list[float]] = {"raw": [], "averaged": []}
            for start, stop in zip([p.start, *steps], steps, strict=False):
                state = advance(state, rates, start, stop, images, labels)
                values["raw"].append(float(value(state.weights)))
                values["averaged"].append(float(value(state.average)))
            states[p.fork, p.stop] = state
            tuner.tell(p, steps, values)
    found = tuner.result
    best = states[found.fork, int(found.schedule.change_points[-1])]
    return found.schedule, best.average if found.value_of == "averaged" else best.weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--cost", type=float, default=2.3)
    options = parser.parse_args()
    steps, (images, labels) = options.steps, data()
    judge = partial(loss, images=images[:VALID], labels=labels[:VALID])
    tuner = paceline.Tuner(lr=(1e-4, 1e-1), steps=steps, cost=options.cost)
    schedule, weights = tune(tuner, every=max(1, steps // 100))
    print(f"tuned: validation loss {float(judge(weights)):.3f}, rate {schedule(steps // 2):.2g} half-way")
    for peak in (1e-3, 1e-2, 1e-1):
        rates = optax.cosine_decay_schedule(peak, steps)(jnp.arange(steps))
        end = advance(begin(0), rates, 0, steps, images, labels)
        print(f"cosine from {peak:.0e}: validation loss {float(judge(end.weights)):.3f}")


if __name__ == "__main__":
    main()
