"""Learning curves as links: the eleven families in table 1 of Domhan, Springenberg and Hutter (2015).

Each family y(x) gives the increment after time t from where its interval begins, y(x_0 + t) - y(x_0). The asymptote or
offset of y cancels, the scale of y is the amplitude, and every other parameter is a latent function. All parameters are
positive: phi(u) = log(1 + e^u) of their latent value, unless a class says otherwise. If y has an asymptote, the
amplitude is the distance to it.

Each class says at which x an interval begins. From x = 0, the curves of Hill3, log power and MMF would be the same, and
so would those of exp4, Janoschek and Weibull. So one of each three begins at x = 0, one at x = 1 (the first epoch), and
one, with a latent function more, where the data say.
"""

from math import log
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import softplus

from paceline.model.links import Link, Power


class VaporPressure(Link):
    """exp(a + b / x + c log x) from x = 1, with b = -phi(f_2) and c = phi(f_3). It has no asymptote."""

    name: ClassVar[str] = "vapor_pressure"
    latents: ClassVar[int] = 3

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        settling, power = softplus(f)
        # exp(phi_2 t / (1 + t) + phi_3 log(1 + t)) - 1
        return torch.expm1(settling * elapsed / (1 + elapsed) + power * torch.log1p(elapsed))


class Pow3(Power):
    """c - a x^-alpha from x = 1, with alpha = phi(f_2): the link "power" by the name it has in their table."""

    name: ClassVar[str] = "pow3"


class LogLogLinear(Link):
    """log(a log x + b) from x = 1, with a / b = phi(f_2). The amplitude is ours: accuracies, as theirs, need none."""

    name: ClassVar[str] = "log_log_linear"

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        # log(1 + phi_2 log(1 + t))
        return torch.log1p(softplus(f) * torch.log1p(elapsed))


class Hill3(Link):
    """y_max x^eta / (kappa^eta + x^eta) from x = 0, with kappa = 1 / phi(f_2) and eta = phi(f_3)."""

    name: ClassVar[str] = "hill3"
    latents: ClassVar[int] = 3

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        speed, exponent = softplus(f)
        # 1 / (1 + (phi_2 t)^-phi_3), as a logistic curve in log t
        rising = torch.sigmoid(exponent * (torch.log(speed) + torch.log(elapsed.clamp_min(1e-300))))
        return torch.where(elapsed > 0, rising, 0.0)


class LogPower(Link):
    """a / (1 + (x / e^b)^c) from x = 1, with b = f_2, of either sign, and c = -phi(f_3)."""

    name: ClassVar[str] = "log_power"
    latents: ClassVar[int] = 3

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        middle, exponent = f[0], softplus(f[1])
        power = exponent * torch.log1p(elapsed)
        # ((1 + t)^phi_3 - 1) / ((1 + t)^phi_3 + e^(f_2 phi_3))
        return -torch.expm1(-power) * torch.sigmoid(power - exponent * middle)


class Pow4(Link):
    """c - (a x + b)^-alpha from x = 0, with a / b = phi(f_2) and alpha = phi(f_3)."""

    name: ClassVar[str] = "pow4"
    latents: ClassVar[int] = 3

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        speed, exponent = softplus(f)
        # 1 - (1 + phi_2 t)^-phi_3
        return -torch.expm1(-exponent * torch.log1p(speed * elapsed))


class MorganMercerFlodin(Link):
    """alpha - (alpha - beta) / (1 + (kappa x)^delta) from kappa x = phi(f_4): kappa = phi(f_2), delta = phi(f_3)."""

    name: ClassVar[str] = "mmf"
    latents: ClassVar[int] = 4

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        speed, exponent, place = softplus(f)
        before, after = exponent * torch.log(place), exponent * torch.log(place + speed * elapsed)
        # 1 - (1 + phi_4^phi_3) / (1 + (phi_4 + phi_2 t)^phi_3)
        return -torch.expm1(before - after) * torch.sigmoid(after)


class Exp4(Link):
    """c - exp(-a x^alpha + b) from x = 1, with a = phi(f_2) and alpha = phi(f_3)."""

    name: ClassVar[str] = "exp4"
    latents: ClassVar[int] = 3

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        speed, exponent = softplus(f)
        # 1 - exp(-phi_2 ((1 + t)^phi_3 - 1))
        return -torch.expm1(-speed * torch.expm1(exponent * torch.log1p(elapsed)))


class Janoschek(Link):
    """alpha - (alpha - beta) exp(-kappa x^delta) from x = 0, with kappa = phi(f_2) and delta = phi(f_3)."""

    name: ClassVar[str] = "janoschek"
    latents: ClassVar[int] = 3

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        speed, exponent = softplus(f)
        # 1 - exp(-phi_2 t^phi_3)
        return -torch.expm1(-speed * elapsed**exponent)


class Weibull(Link):
    """alpha - (alpha - beta) exp(-(kappa x)^delta) from kappa x = phi(f_4): kappa = phi(f_2), delta = phi(f_3)."""

    name: ClassVar[str] = "weibull"
    latents: ClassVar[int] = 4

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        speed, exponent, place = softplus(f)
        # 1 - exp(phi_4^phi_3 - (phi_4 + phi_2 t)^phi_3)
        return -torch.expm1(place**exponent - (place + speed * elapsed) ** exponent)


class Ilog2(Link):
    """c - a / log x from x = 2, where a unit of time is a mean interval. Nothing but the amplitude is free."""

    name: ClassVar[str] = "ilog2"
    latents: ClassVar[int] = 1

    def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
        # 1 - log 2 / log(2 + t)
        return 1 - log(2) / torch.log(2 + elapsed)
