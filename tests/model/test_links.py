"""Links: formulas, inverses, names."""

import pytest
import torch

from paceline.model import LINKS, link_of
from paceline.model.links import inverse_softplus


@pytest.mark.parametrize("name", list(LINKS))
def test_links_start_at_zero_increase_and_invert(name: str) -> None:
    link = link_of(name)
    f = torch.tensor([0.4, 0.7, 0.2, -0.3])[: link.latents].double()
    t = torch.linspace(0, 5, 50).double()
    eta = link(f[:, None], t)
    assert float(eta[0]) == 0.0
    assert bool((eta.diff() > 0).all())
    assert float(link.inverse_amplitude(link.amplitude(f[:1]))) == pytest.approx(float(f[0]))


def test_formulas_of_the_links() -> None:
    f, t = torch.tensor([0.3, -0.2]).double(), torch.tensor(1.7).double()
    phi = torch.log1p(torch.exp(f))
    assert float(link_of("linear")(f[:1], t)) == pytest.approx(float(phi[0] * t))
    assert float(link_of("signed")(-f[:1], t)) == pytest.approx(float(-f[0] * t))
    assert float(link_of("exponential")(f, t)) == pytest.approx(float(phi[0] * (1 - torch.exp(-phi[1] * t))))
    assert float(link_of("power")(f, t)) == pytest.approx(float(phi[0] * (1 - (1 + t) ** -phi[1])))
    assert float(link_of("hyperbolic")(f, t)) == pytest.approx(float(phi[0] * phi[1] * t / (1 + phi[1] * t)))
    y = torch.tensor([1e-8, 0.5, 30.0]).double()
    torch.testing.assert_close(torch.nn.functional.softplus(inverse_softplus(y)), y)


def test_only_links_whose_curve_is_time_are_linear_in_time() -> None:
    t = torch.linspace(0, 3, 7).double()
    for name in LINKS:
        link = link_of(name)
        f = torch.full((link.latents, 1), 0.3).double()
        assert link.linear_in_time == torch.equal(link.curve_of(f, t), t)
