"""The links of Domhan et al.: each is the increase of the family's own formula, from where its interval begins."""

from math import log

import numpy as np
import pytest
import torch

from paceline.model import LINKS, Link, link_of

T = np.linspace(0, 4, 41)
LATENTS = np.array([0.3, 0.8, -0.4, 0.1])
ONE, TWO, THREE, FOUR = np.log1p(np.exp(LATENTS))  # phi of them


def increase(y, start: float, speed: float = 1.0) -> np.ndarray:
    """y(x) - y(start) for x from `start` on."""
    return y(start + speed * T) - y(start)


def test_vapor_pressure() -> None:  # exp(a + b / x + c log x), of which the amplitude is the value at x = 1
    check("vapor_pressure", increase(lambda x: np.exp(log(ONE) + TWO - TWO / x + THREE * np.log(x)), 1))


def test_pow3() -> None:  # c - a x^-alpha
    check("pow3", increase(lambda x: 5 - ONE * x**-TWO, 1))
    assert torch.equal(both("pow3"), both("power"))


def test_log_log_linear() -> None:  # log(a log x + b), times an amplitude
    check("log_log_linear", increase(lambda x: ONE * np.log(3 * TWO * np.log(x) + 3), 1))


def test_hill3() -> None:  # y_max x^eta / (kappa^eta + x^eta)
    check("hill3", increase(lambda x: ONE * x**THREE / (TWO**-THREE + x**THREE), 0))


def test_log_power() -> None:  # a / (1 + (x / e^b)^c), of which the amplitude is what is left at x = 1
    def y(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + (x / np.exp(LATENTS[1])) ** -THREE)

    check("log_power", ONE * increase(y, 1) / (1 - y(np.array(1.0))))


def test_pow4() -> None:  # c - (a x + b)^-alpha: the amplitude is b^-alpha
    b = ONE ** (-1 / THREE)
    check("pow4", increase(lambda x: 7 - (TWO * b * x + b) ** -THREE, 0))


def test_mmf() -> None:  # alpha - (alpha - beta) / (1 + (kappa x)^delta), of which the amplitude is what is left
    def y(x: np.ndarray) -> np.ndarray:
        return 2 - (2 - 1) / (1 + (TWO * x) ** THREE)

    start = FOUR / TWO
    check("mmf", ONE * increase(y, start) / (2 - y(np.array(start))))


def test_exp4() -> None:  # c - e^(-a x^alpha + b), of which the amplitude is what is left at x = 1
    check("exp4", increase(lambda x: 3 - np.exp(-TWO * x**THREE + log(ONE) + TWO), 1))


def test_janoschek() -> None:  # alpha - (alpha - beta) e^(-kappa x^delta)
    check("janoschek", increase(lambda x: 4 - ONE * np.exp(-TWO * x**THREE), 0))


def test_weibull() -> None:  # alpha - (alpha - beta) e^(-(kappa x)^delta), of which the amplitude is what is left
    def y(x: np.ndarray) -> np.ndarray:
        return 2 - np.exp(-((TWO * x) ** THREE))

    start = FOUR / TWO
    check("weibull", ONE * increase(y, start) / (2 - y(np.array(start))))


def test_ilog2() -> None:  # c - a / log x, of which the amplitude is what is left at x = 2
    check("ilog2", increase(lambda x: 6 - ONE * log(2) / np.log(x), 2))


@pytest.mark.parametrize("name", list(LINKS))
def test_curves_and_their_gradients_are_finite_for_extreme_latents_and_times(name: str) -> None:
    link: Link = link_of(name)
    for value in (-9.0, 9.0):
        f = torch.full((link.latents, 1), value).double().requires_grad_()
        eta = link(f, torch.tensor([0.0, 1e-9, 1.0, 20.0]).double())
        assert bool(torch.isfinite(eta).all())
        assert bool((eta >= 0).all()) or link.signed
        (gradient,) = torch.autograd.grad(eta.sum(), f)
        assert bool(torch.isfinite(gradient).all())


def both(name: str) -> torch.Tensor:
    link = link_of(name)
    return link(torch.from_numpy(LATENTS[: link.latents, None]), torch.from_numpy(T))


def check(name: str, expected: np.ndarray) -> None:
    np.testing.assert_allclose(both(name).numpy(), expected, rtol=1e-9, atol=1e-12)
