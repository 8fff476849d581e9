"""The fused block against the plain one: on a GPU if there is one, otherwise by Triton's interpreter."""

import os
from copy import deepcopy

import pytest
import torch
from torch import Tensor

from benchmarks._cifar import Block

ON_GPU = torch.cuda.is_available()
if not ON_GPU:
    os.environ["TRITON_INTERPRET"] = "1"  # read as kernels are defined
pytest.importorskip("triton")

from experiments import _cifar_kernels as kernels  # noqa: E402

DEVICE = "cuda" if ON_GPU else "cpu"
SIZES = [(16, 16), (16, 32), (32, 32), (32, 64), (64, 64)]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles for a few pixels: interpreted programs are slow."""
    if not ON_GPU:
        monkeypatch.setattr(kernels, "TILE", {16: 32, 32: 16, 64: 16})
        monkeypatch.setattr(kernels, "CHUNK", {16: 64, 32: 32, 64: 32})
        monkeypatch.setattr(kernels, "PART", 16)


def blocks(inside: int, outside: int) -> tuple[Block, Block]:
    torch.manual_seed(inside + outside)
    plain, fused = Block(inside, outside), kernels.FusedBlock(inside, outside)
    for norm in plain.norms:
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.normal_(norm.bias, std=0.3)
    fused.load_state_dict(plain.state_dict())
    return tuple(block.to(DEVICE, memory_format=torch.channels_last) for block in (plain, fused))


def images(count: int, channels: int, side: int) -> Tensor:
    return torch.randn(count, channels, side, side, device=DEVICE).contiguous(memory_format=torch.channels_last)


def distance(found: Tensor, exact: Tensor) -> float:
    return float((found.detach().double() - exact.detach()).norm() / exact.detach().norm())


def errors(block: Block, exact: Block, x: Tensor, slope: Tensor, dtype: torch.dtype) -> dict[str, float]:
    """How far a block is from float64: output, gradients, running moments."""
    one = x.detach().to(dtype).requires_grad_()
    same = one.detach().double().requires_grad_()
    with torch.autocast(DEVICE, dtype, enabled=dtype == torch.bfloat16):
        out = block(one)
    out.backward(slope.to(dtype))
    expected = exact(same)
    expected.backward(slope.to(dtype).double())
    found = {"out": distance(out, expected), "x": distance(one.grad, same.grad)}
    for (name, a), b in zip(block.named_parameters(), exact.parameters(), strict=True):
        found[name] = distance(a.grad, b.grad)
    for (name, a), b in zip(block.named_buffers(), exact.buffers(), strict=True):
        if a.is_floating_point():
            found[name] = distance(a, b)
    return found


@pytest.mark.parametrize(("inside", "outside"), SIZES)
def test_a_fused_block_is_the_block(inside: int, outside: int) -> None:
    plain, fused = blocks(inside, outside)
    exact = deepcopy(plain).double()
    count, side = (128, 512 // inside) if ON_GPU else (2, 8)
    x, slope = images(count, inside, side), images(count, outside, side * inside // outside)
    if not ON_GPU:
        found = errors(fused, exact, x, slope, torch.float32)
        assert max(found.values()) < 1e-6, found
        return
    found = errors(fused, deepcopy(exact), x, slope, torch.bfloat16)
    usual = errors(plain, exact, x, slope, torch.bfloat16)
    assert all(found[name] < 1.5 * usual[name] + 1e-3 for name in usual), (found, usual)


def test_gradients_of_kernels_lie_in_memory_as_kernels_do() -> None:
    """So that autograd keeps them as they are in place of copying them."""
    _, fused = blocks(16, 16)
    x = images(128, 16, 32).to(torch.bfloat16) if ON_GPU else images(2, 16, 8)
    fused(x).sum().backward()
    assert fused.first.weight.grad.stride() == fused.first.weight.stride()


def test_images_and_kernels_may_lie_in_memory_as_they_like() -> None:
    _, fused = blocks(16, 16)
    x = images(128, 16, 32).to(torch.bfloat16) if ON_GPU else images(2, 16, 8)
    usual = fused(x)
    other = deepcopy(fused).to(memory_format=torch.contiguous_format)(x.contiguous())
    torch.testing.assert_close(other, usual)


def test_a_fused_block_evaluates_as_the_plain_one() -> None:
    plain, fused = (block.eval() for block in blocks(16, 32))
    x = images(2, 16, 8)
    assert torch.equal(plain(x), fused(x))


def test_pixels_that_do_not_fill_a_program_are_refused() -> None:
    _, fused = blocks(16, 16)
    with pytest.raises(ValueError, match=r"expected a multiple of .* pixels, got 25: use batches of 128"):
        fused(images(1, 16, 5))
