"""Tune a JAX training by ask and tell. The rates of an interval become an optax schedule; a state is a pytree.

Trains a small network on scikit-learn's digits, in seconds on a CPU. JAX arrays never change, so keeping a state for
clones needs no copy. Only the function `tune` uses Paceline.

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

BATCH, VALID, AVERAGE_SHARE = 64, 450, 0.15


class State(NamedTuple):
    """Everything that decides how a run continues."""

    weights: Any
    average: Any  # of the weights, over the last AVERAGE_SHARE of the steps
    optimizer: Any
    key: jax.Array


def data() -> tuple[jax.Array, jax.Array]:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return jnp.asarray(images[order] / 16.0, jnp.float32), jnp.asarray(labels[order])


def optimizer(rates: jax.Array) -> optax.GradientTransformation:
    """Adam with an optax schedule that reads its rates from an array."""
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
    """Do updates `start` to `stop`, each at its own rate."""

    def update(step: jax.Array, state: State) -> State:
        key, draw = jax.random.split(state.key)
        rows = jax.random.randint(draw, (BATCH,), VALID, len(labels))
        gradient = jax.grad(loss)(state.weights, images[rows], labels[rows])
        updates, optimizer_state = optimizer(rates).update(gradient, state.optimizer)
        weights = optax.apply_updates(state.weights, updates)
        average = optax.incremental_update(weights, state.average, 1 / (1 + AVERAGE_SHARE * step))
        return State(weights, average, optimizer_state, key)

    return jax.lax.fori_loop(start, stop, update, state)


def tune(tuner: paceline.Tuner, every: int, seed: int = 0) -> tuple[paceline.Schedule, Any]:
    """Run the intervals that the tuner asks for; return the best schedule and its weights."""
    images, labels = data()
    states: dict[tuple[int, int], State] = {}
    value = jax.jit(lambda weights: loss(weights, images[:VALID], labels[:VALID]))
    while (intervals := tuner.ask()) is not None:
        for interval in intervals:
            source = interval.fork if interval.parent is None else interval.parent
            state = states[source, interval.start] if interval.start else begin(seed)
            if interval.parent is not None:  # a clone sees other batches than its parent
                state = state._replace(key=jax.random.fold_in(state.key, interval.fork))
            rates = jnp.asarray(interval.schedule(np.arange(tuner.goal.steps)), jnp.float32)
            steps = sorted({*range(interval.start + every, interval.stop, every), interval.stop})
            values: dict[str, list[float]] = {"raw": [], "averaged": []}
            for start, stop in zip([interval.start, *steps], steps, strict=False):
                state = advance(state, rates, start, stop, images, labels)
                values["raw"].append(float(value(state.weights)))
                values["averaged"].append(float(value(state.average)))
            states[interval.fork, interval.stop] = state
            tuner.tell(interval, steps, values)
    result = tuner.result
    best = states[result.fork, int(result.schedule.change_points[-1])]
    return result.schedule, best.average if result.value_of == "averaged" else best.weights


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
