"""The fused network against the plain one: on a GPU if there is one, otherwise its programs on the host."""

import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from experiments import _cifar_kernels as kernels
from experiments._cifar_speed import FLAGS
from experiments._cifar_training import network

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
COMPILER = (
    kernels.NVCC
    if ON_GPU
    else ("g++", "-O2", "-std=c++17", "-x", "c++", "-shared", "-fPIC", f"-I{Path(__file__).parent}")
)
DEPTHS = [8, 14]  # one block a stage, and two: blocks that change sizes come after each other, or not

pytestmark = pytest.mark.skipif(shutil.which(COMPILER[0]) is None, reason=f"no {COMPILER[0]} to compile programs with")


@pytest.fixture(autouse=True)
def _compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.FusedNetwork, "compiler", COMPILER)


def networks(depth: int, apart: float = 0.3) -> tuple[nn.Sequential, kernels.FusedNetwork]:
    plain = network(depth, 1)
    generator = torch.Generator().manual_seed(2)
    for norm in plain.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.uniform_(norm.weight, 0.5, 1.5, generator=generator)
            nn.init.normal_(norm.bias, std=apart, generator=generator)
            nn.init.normal_(norm.running_mean, std=0.3, generator=generator)
    plain = plain.to(DEVICE)
    return plain, kernels.FusedNetwork(plain)


def images(count: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(count, 3, 32, 32, generator=generator), torch.randint(10, (count,), generator=generator)
    return x.to(DEVICE), y.to(DEVICE)


def distance(found: Tensor, exact: Tensor) -> float:
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


class Rounded(torch.autograd.Function):
    """Values, their gradient or both as bf16 has them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: bool, gradient: bool) -> Tensor:
        ctx.gradient = gradient
        return x.bfloat16().double() if values else x.clone()

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        return slopes[0].bfloat16().double() if ctx.gradient else slopes[0], None, None


def exact_loss(model: nn.Sequential, x: Tensor, labels: Tensor) -> Tensor:
    """The loss in float64, rounded where the fused network rounds: otherwise rectifiers would open at other places."""

    def convolved(conv: nn.Conv2d, a: Tensor) -> Tensor:
        w = Rounded.apply(conv.weight, True, False)
        return Rounded.apply(nn.functional.conv2d(a, w, stride=conv.stride, padding=1), True, True)

    def rectified(total: Tensor) -> Tensor:
        return Rounded.apply(torch.relu(Rounded.apply(total, False, True)), True, False)

    out = rectified(model[1](convolved(model[0], Rounded.apply(x.double(), True, False))))
    for block in model[3:-3]:
        skip, pad = out, block.padding
        if pad:
            skip = nn.functional.pad(out[:, :, ::2, ::2], (0, 0, 0, 0, pad, pad))
        inner = rectified(block.norms[0](convolved(block.first, Rounded.apply(out, False, True))))
        out = rectified(skip + block.norms[1](convolved(block.second, inner)))
    return nn.functional.cross_entropy(model[-1](out.mean((2, 3))), labels)


@pytest.mark.parametrize(
    ("depth", "more", "apart", "bound"),
    [
        (14, "", 0.3, 0.2),
        (8, "", 10.0, 0.01),
        (14, "", 10.0, 0.01),
        (8, " ".join(FLAGS), 10.0, 0.01),
    ],
)
def test_a_step_is_that_of_the_plain_network(
    depth: int, more: str, apart: float, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a rectifier is about to open, the last bit of a sum decides: few are where normalisations lie far apart."""
    monkeypatch.setattr(kernels.FusedNetwork, "compiler", (*COMPILER, *more.split()))
    plain, fused = networks(depth, apart)
    exact = plain.double()
    x, y = images(128 if ON_GPU else 4)
    losses = fused.loss(x, y), exact_loss(exact, x, y)
    for loss in losses:
        loss.backward()
    found = deepcopy(exact)
    kernels.fill(found, {"kernels": fused.kernels.grad, "others": fused.others.grad, "moments": fused.moments})
    before = {"loss": distance(*losses)}
    for (name, a), b in zip(found.named_buffers(), exact.buffers(), strict=True):
        if a.is_floating_point():
            before[name] = distance(a, b)
    pairs = zip(found.named_parameters(), exact.parameters(), strict=True)
    back = {name: distance(a, b.grad) for (name, a), b in pairs}
    assert max(before.values()) < 1e-3, before
    assert np.median([*back.values()]) < bound, back
    assert max(back.values()) < 0.2, back


@pytest.mark.parametrize("depth", DEPTHS)
def test_it_evaluates_as_the_plain_network_does(depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, fused = (model.eval() for model in networks(depth))
    monkeypatch.setattr(kernels, "AT_A_TIME", 4)
    x, _ = images(8)
    with torch.no_grad():
        exact = deepcopy(plain).double()(x.double())
        found = fused(x), fused(x.contiguous(memory_format=torch.channels_last))
    assert torch.equal(*found)
    assert distance(found[0], exact) < 0.01
    assert torch.equal(fused.moments, kernels.flat(plain)["moments"])


def test_a_plain_network_is_filled_from_a_fused_one() -> None:
    plain, fused = networks(8)
    other = network(8, 5).to(DEVICE)
    kernels.fill(other, fused.state_dict())
    for (name, a), b in zip(other.state_dict().items(), plain.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


def test_steps_are_the_same_each_time_and_no_number_stays_none() -> None:
    _, fused = networks(8)
    x, y = images(4)
    losses = [fused.loss(x, y) for _ in range(2)]
    assert torch.equal(*losses)
    with torch.no_grad():
        fused.kernels[500] = torch.nan
    assert not torch.isfinite(fused.loss(x, y))


def test_what_programs_cannot_read_is_refused() -> None:
    _, fused = networks(8)
    x, y = images(4)
    with pytest.raises(ValueError, match=r"expected a multiple of 4 images of 3 x 32 x 32, float32, got \(3, 3, 32"):
        fused.loss(x[:3], y[:3])
    with pytest.raises(RuntimeError, match=r"ask for its loss"):
        fused(x)
