"""When a finite value is absurd, in every direction and on every scale of the values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline import Objective, Schedule, Trace
from paceline.model import TraceModel
from paceline.traces import Segmenter, ended_worse, has_diverged, is_absurd, lies_far_above


@pytest.mark.parametrize(
    ("losses", "diverged"),
    [
        ([2.0, 1.0, 0.5], False),
        ([2.0, 19.0], False),  # high rates often begin like this
        ([2.0, 21.0], True),
        ([2.0, 0.1, 2.9], False),
        ([2.0, 0.1, 3.1], True),  # all that was gained is lost, and as much again
        ([2.0, 1.9, 3.1], False),  # little was gained
        ([2.0, 1e6, 1.0], False),  # it has recovered
        ([-0.1, -0.9, -0.1, 0.0], False),  # an accuracy that collapses is not absurd
        ([100.0, -50.0, 300.0], True),
        ([0.0, -0.3, 0.5, -0.2, 0.1, 0.4], False),  # a reward of either sign
        ([0.0, 0.0, 0.0, 1.0], False),  # nothing says what is large
        ([2.0], False),
        ([], False),
    ],
)
def test_whether_a_run_has_diverged_by_its_end(losses: list[float], diverged: bool) -> None:
    assert has_diverged(np.array(losses)) is diverged


def test_noise_is_not_divergence() -> None:
    losses = np.array([1.0, 0.4, *(0.4 + 0.5 * np.array([1, -0.7, 1, -0.7, 1, -0.7, 1, -0.7, 1, -0.7, 2.4]))])
    assert losses[-1] > 1.5
    assert not has_diverged(losses)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.floats(0.01, 100), st.integers(1, 30))
def test_absurd_values_do_not_depend_on_the_unit_or_on_what_comes_later(
    losses: list[float], unit: float, count: int
) -> None:
    values = np.array(losses).round(3)
    absurd = is_absurd(values)
    np.testing.assert_array_equal(is_absurd(values[:count]), absurd[:count])
    near = np.abs(values[:, None] - values).max() < 1e-9
    if not near:
        assert (is_absurd(unit * values) == absurd).mean() > 0.9  # all but those that lie on the limit


STEPS = np.arange(0, 201, 10)


def runs(mode: str) -> list[Trace]:
    """Four runs, the last of which diverges to 4e4; as losses, or as the same losses with a minus sign."""
    sign = 1.0 if mode == "min" else -1.0
    rng = np.random.default_rng(0)
    falling = [3.0 * np.exp(-rate * STEPS) + 0.1 + 0.01 * rng.standard_normal(21) for rate in (0.003, 0.006, 0.009)]
    diverging = np.where(STEPS > 100, 4e4 * (STEPS / 200) ** 6, 3.0 - 0.01 * STEPS)
    objective = Objective("min" if mode == "min" else "max")
    return [
        Trace(STEPS, sign * values, Schedule.constant(rate, 200), objective=objective)
        for rate, values in zip((0.003, 0.006, 0.009, 0.5), [*falling, diverging], strict=True)
    ]


@pytest.mark.parametrize("link", ["linear", "exponential", "signed"])
def test_a_diverged_run_spoils_no_model_in_either_mode(link: str) -> None:
    models = [TraceModel.fit(runs(mode), intervals=4, link=link) for mode in ("min", "max")]
    assert models[0].noise == pytest.approx(models[1].noise, rel=1e-3)
    assert models[0].noise < 0.2
    for model in models:
        assert model.failed()[-2:].all()


def test_intervals_with_absurd_values_are_marked_and_the_first_of_them_is_to_blame() -> None:
    run = runs("max")[-1]
    segments = Segmenter.for_traces([run], 4).split(run)
    assert [(s.failed, s.diverged, s.begins_diverged) for s in segments] == [
        (False, False, False),
        (False, False, False),
        (True, True, False),
        (True, True, True),
    ]


def test_values_of_either_sign_are_absurd_far_outside_what_was_seen() -> None:
    rewards = np.array([0.1, -0.4, 0.3, 0.5, 0.2, 0.6, -80.0])
    assert is_absurd(-rewards).tolist() == [False] * 6 + [True]


@pytest.mark.parametrize(
    ("losses", "worse"),
    [
        ([2.0, 1.0, 0.5], False),
        ([2.0, 2.9], False),
        ([2.0, 3.1], True),
        ([2.0, 9.0, 1.0], False),  # it has recovered
        ([-0.3, -0.6, -0.001], True),  # 1 / (1 + loss), diverged
        ([-0.1, -0.09], False),  # an accuracy by chance
        ([], False),
    ],
)
def test_whether_a_run_that_is_over_ended_worse(losses: list[float], worse: bool) -> None:
    assert ended_worse(np.array(losses)) is worse
    assert lies_far_above(np.array(losses)).shape == (len(losses),)


def test_a_noisy_value_that_did_not_change_has_not_ended_worse() -> None:
    noisy = np.array([0.3, 1.0, 0.2, 0.9, 0.4, 1.1, 0.3, 0.8])
    assert lies_far_above(noisy)[-1]
    assert not ended_worse(noisy)
