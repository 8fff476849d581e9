"""A block of a residual network as ten kernels (Triton) in place of forty: what the CIFAR-10 experiment trains with.

Steps of these small networks are many launches of little work each. Here normalisation, rectifier and their backward
passes are part of the convolutions that they lie between, and moments are summed as values are written. Numbers are
those of `benchmarks._cifar.Block`, up to rounding. Images are (pixels, channels) in memory, sums and weights float32.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from benchmarks._cifar import Block

EPS, MOMENTUM = constexpr(1e-5), constexpr(0.1)  # of the normalisation, as in torch
TILE = {16: 128, 32: 128, 64: 64}  # pixels of a program, by channels
CHUNK = {16: 1024, 32: 512, 64: 512}  # pixels that one program sums gradients of weights over,
PART, WARPS = 64, {16: 4, 32: 8, 64: 8}  # so many at a time, by so many warps


@triton.jit
def _moments(sums, channels, n, size: constexpr):
    """Mean and 1 / standard deviation of channels whose values and squares were summed."""
    mean = tl.load(sums + channels) / n
    return mean, tl.rsqrt(tl.maximum(tl.load(sums + size + channels) / n - mean * mean, 0.0) + EPS)


@triton.jit
def _line(sums, gamma, beta, channels, n, size: constexpr):
    """Slope and offset of a normalisation."""
    mean, inverse = _moments(sums, channels, n, size)
    slope = tl.load(gamma + channels) * inverse
    return slope, tl.load(beta + channels) - mean * slope


@triton.jit
def _normal(y, mean, inverse):
    """Values with mean 0 and standard deviation 1."""
    return (y.to(tl.float32) - mean[None, :]) * inverse[None, :]


@triton.jit
def _rectified(y, here, slope, offset):
    """relu(norm(y)) where there are pixels, 0 around them."""
    return tl.where(here, tl.maximum(y.to(tl.float32) * slope[None, :] + offset[None, :], 0.0), 0.0).to(y.dtype)


@triton.jit
def _place(pixels, height: constexpr, width: constexpr):
    """Image, row and column of pixels."""
    return pixels // (height * width), pixels // width % height, pixels % width


@triton.jit
def _sum(one, other, to, channels, size: constexpr):
    """Add the sums over pixels of two arrays."""
    tl.atomic_add(to + channels, tl.sum(one, 0), sem="relaxed")
    tl.atomic_add(to + size + channels, tl.sum(other, 0), sem="relaxed")


@triton.jit
def _convolve(
    x, w, y, sums, before, gamma, beta, n,
    height: constexpr, width: constexpr, c_in: constexpr, c_out: constexpr,
    stride: constexpr, normed: constexpr, tile: constexpr,
):  # fmt: skip
    """y = w * x, or w * relu(norm(x)); and the sums of y and its squares. height and width are y's."""
    pixels = tl.program_id(0) * tile + tl.arange(0, tile)
    image, row, column = _place(pixels, height, width)
    inside, outside = tl.arange(0, c_in), tl.arange(0, c_out)
    if normed:
        slope, offset = _line(before, gamma, beta, inside, n, c_in)
    total = tl.zeros((tile, c_out), tl.float32)
    for tap in range(9):
        r, c = row * stride + tap // 3 - 1, column * stride + tap % 3 - 1
        here = ((r >= 0) & (r < height * stride) & (c >= 0) & (c < width * stride))[:, None]
        at = (image * height * stride + r) * width * stride + c
        part = tl.load(x + at[:, None] * c_in + inside[None, :], mask=here, other=0.0)
        if normed:
            part = _rectified(part, here, slope, offset)
        weights = tl.load(w + outside[None, :] * (9 * c_in) + tap * c_in + inside[:, None])
        total = tl.dot(part, weights.to(part.dtype), total)
    rounded = total.to(y.dtype.element_ty)
    tl.store(y + pixels[:, None] * c_out + outside[None, :], rounded)
    values = rounded.to(tl.float32)
    _sum(values, values * values, sums, outside, c_out)


@triton.jit
def _follow(sums, mean, variance, channels, n, size: constexpr):
    """Move the running moments that an evaluation uses."""
    now = tl.load(sums + channels) / n
    spread = (tl.load(sums + size + channels) / n - now * now) * (n / (n - 1.0))
    old_mean, old_variance = tl.load(mean + channels), tl.load(variance + channels)
    tl.store(mean + channels, old_mean + MOMENTUM * (now - old_mean))
    tl.store(variance + channels, old_variance + MOMENTUM * (spread - old_variance))


@triton.jit
def _join(
    x, y, out, first, second, gamma, beta, mean1, variance1, mean2, variance2, n,
    height: constexpr, width: constexpr, c_in: constexpr, c_out: constexpr,
    stride: constexpr, tile: constexpr,
):  # fmt: skip
    """out = relu(x + norm(y)), where x skips pixels and pads channels if sizes differ; and running moments."""
    pixels = tl.program_id(0) * tile + tl.arange(0, tile)
    channels = tl.arange(0, c_out)
    slope, offset = _line(second, gamma, beta, channels, n, c_out)
    here = pixels[:, None] * c_out + channels[None, :]
    if stride == 1:
        way = tl.load(x + here)
    else:
        image, row, column = _place(pixels, height, width)
        at = (image * height * stride + row * stride) * width * stride + column * stride
        c = channels - (c_out - c_in) // 2
        way = tl.load(x + at[:, None] * c_in + c[None, :], mask=((c >= 0) & (c < c_in))[None, :], other=0.0)
    total = way.to(tl.float32) + tl.load(y + here).to(tl.float32) * slope[None, :] + offset[None, :]
    tl.store(out + here, tl.maximum(total, 0.0).to(out.dtype.element_ty))
    if tl.program_id(0) == 0:
        _follow(first, mean1, variance1, channels, n, c_out)
        _follow(second, mean2, variance2, channels, n, c_out)


@triton.jit
def _cut(given, out, y, g, sums, found, n, size: constexpr, tile: constexpr):
    """g = given where out > 0; the sums of g and of g times the normalised y."""
    pixels, channels = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, size)
    here = pixels[:, None] * size + channels[None, :]
    mean, inverse = _moments(sums, channels, n, size)
    slope = tl.where(tl.load(out + here) > 0, tl.load(given + here), 0.0)
    tl.store(g + here, slope)
    values = slope.to(tl.float32)
    _sum(values, values * _normal(tl.load(y + here), mean, inverse), found, channels, size)


@triton.jit
def _denormalise(g, y, to, sums, gamma, found, n, size: constexpr, tile: constexpr):
    """The gradient at y, from that at norm(y)."""
    pixels, channels = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, size)
    here = pixels[:, None] * size + channels[None, :]
    mean, inverse = _moments(sums, channels, n, size)
    slope = tl.load(gamma + channels) * inverse
    plain, normal = tl.load(found + channels) / n, tl.load(found + size + channels) / n
    along = _normal(tl.load(y + here), mean, inverse) * normal[None, :]
    left = tl.load(g + here).to(tl.float32) - plain[None, :] - along
    tl.store(to + here, (slope[None, :] * left).to(to.dtype.element_ty))


@triton.jit
def _back(
    g, w, to, beside, sums, gamma, beta, found, n,
    height: constexpr, width: constexpr, c_in: constexpr, c_out: constexpr,
    stride: constexpr, normed: constexpr, tile: constexpr,
):  # fmt: skip
    """The gradient at the input of a convolution, height times width, from that at its output.

    If its input was relu(norm(y)), where y is `beside`: the gradient at norm(y), and its sums for `_denormalise`.
    Otherwise `beside` is the gradient of the way around the block, and is added.
    """
    pixels = tl.program_id(0) * tile + tl.arange(0, tile)
    image, row, column = _place(pixels, height, width)
    inside, outside = tl.arange(0, c_in), tl.arange(0, c_out)
    total = tl.zeros((tile, c_in), tl.float32)
    for tap in range(9):
        r, c = row + 1 - tap // 3, column + 1 - tap % 3
        here = (r >= 0) & (r < height) & (c >= 0) & (c < width)
        if stride > 1:
            here = here & (r % stride == 0) & (c % stride == 0)
        at = (image * (height // stride) + r // stride) * (width // stride) + c // stride
        part = tl.load(g + at[:, None] * c_out + outside[None, :], mask=here[:, None], other=0.0)
        weights = tl.load(w + outside[:, None] * (9 * c_in) + tap * c_in + inside[None, :])
        total = tl.dot(part, weights.to(part.dtype), total)
    here = pixels[:, None] * c_in + inside[None, :]
    if normed:
        slope, offset = _line(sums, gamma, beta, inside, n, c_in)
        mean, inverse = _moments(sums, inside, n, c_in)
        y = tl.load(beside + here).to(tl.float32)
        rounded = tl.where(y * slope[None, :] + offset[None, :] > 0, total, 0.0).to(to.dtype.element_ty)
        tl.store(to + here, rounded)
        values = rounded.to(tl.float32)
        _sum(values, values * _normal(y, mean, inverse), found, inside, c_in)
    else:
        if stride == 1:
            way = tl.load(beside + here)
        else:
            even = (row % stride == 0) & (column % stride == 0)
            at = (image * (height // stride) + row // stride) * (width // stride) + column // stride
            c = inside + (c_out - c_in) // 2
            way = tl.load(beside + at[:, None] * c_out + c[None, :], mask=even[:, None], other=0.0)
        tl.store(to + here, (total + way.to(tl.float32)).to(to.dtype.element_ty))


@triton.jit
def _weigh(
    x, g, to, sums, gamma, beta, n,
    height: constexpr, width: constexpr, c_in: constexpr, c_out: constexpr,
    stride: constexpr, normed: constexpr, chunk: constexpr, tile: constexpr, span: constexpr,
):  # fmt: skip
    """Add the gradient of weights (outside, row, column, inside) over some pixels of g; one row of them a program.

    The three taps of a row and their channels are one axis, span as the next power of two.
    """
    line = tl.program_id(1)
    wide, outside = tl.arange(0, span), tl.arange(0, c_out)
    tap, inside = wide // c_in, wide % c_in
    if normed:
        slope, offset = _line(sums, gamma, beta, inside, n, c_in)
    total = tl.zeros((span, c_out), tl.float32)
    for start in range(0, chunk, tile):
        pixels = tl.program_id(0) * chunk + start + tl.arange(0, tile)
        image, row, column = _place(pixels, height, width)
        r = (row * stride + line - 1)[:, None]
        c = column[:, None] * stride + tap[None, :] - 1
        here = (r >= 0) & (r < height * stride) & (c >= 0) & (c < width * stride) & (tap < 3)[None, :]
        at = (image[:, None] * height * stride + r) * width * stride + c
        part = tl.load(x + at * c_in + inside[None, :], mask=here, other=0.0)
        if normed:
            part = _rectified(part, here, slope, offset)
        slopes = tl.load(g + pixels[:, None] * c_out + outside[None, :])
        total = tl.dot(tl.trans(part), slopes, total)
    at = outside[None, :] * (9 * c_in) + line * 3 * c_in + wide[:, None]
    tl.atomic_add(to + at, total, mask=(tap < 3)[:, None], sem="relaxed")


class _Fused(torch.autograd.Function):
    """The block, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *given: Tensor) -> Tensor:
        """Parameters of the two convolutions and norms (w, gamma, beta, twice), then their running moments."""
        w1, g1, b1, w2, g2, b2, *running = given
        x, w1, w2 = (image.contiguous(memory_format=torch.channels_last) for image in (x, w1, w2))
        inside, outside = x.shape[1], len(w1)
        stride = outside // inside
        size = (x.shape[2] // stride, x.shape[3] // stride)
        n, tile = len(x) * size[0] * size[1], TILE[outside]
        if n % CHUNK[outside]:
            raise ValueError(
                f"expected a multiple of {CHUNK[outside]} pixels, got {n}: use batches of 128 images of 32 x 32"
            )
        y1, y2, out = (_images(x, outside, size) for _ in range(3))
        sums = x.new_zeros(4 * outside, dtype=torch.float32)
        first, second = sums[: 2 * outside], sums[2 * outside :]
        grid = (n // tile,)
        _convolve[grid](x, w1, y1, first, first, g1, b1, n, *size, inside, outside, stride, False, tile)
        _convolve[grid](y1, w2, y2, second, first, g1, b1, n, *size, outside, outside, 1, True, tile)
        _join[grid](x, y2, out, first, second, g2, b2, *running, n, *size, inside, outside, stride, tile)
        ctx.save_for_backward(x, w1, g1, b1, w2, g2, y1, y2, out, first, second)
        return out

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients at x and at the six parameters."""
        x, w1, g1, b1, w2, g2, y1, y2, out, first, second = ctx.saved_tensors
        slope = slopes[0].contiguous(memory_format=torch.channels_last)
        inside, outside = x.shape[1], len(w1)
        stride, size, whole = outside // inside, out.shape[2:], x.shape[2:]
        n, tile, chunk = out.numel() // outside, TILE[outside], CHUNK[outside]
        found = x.new_zeros(4 * outside + w1.numel() + w2.numel(), dtype=torch.float32)
        beta2, gamma2, beta1, gamma1, to1, to2 = found.split([outside] * 4 + [w1.numel(), w2.numel()])
        g, to, inner, back = (torch.empty_like(image) for image in (out, out, out, x))
        grid, chunks = (n // tile,), (n // chunk, 3)
        _cut[grid](slope, out, y2, g, second, beta2, n, outside, tile)
        _denormalise[grid](g, y2, to, second, g2, beta2, n, outside, tile)
        over = {"chunk": chunk, "tile": PART, "num_warps": WARPS[outside]}
        wide = triton.next_power_of_2(3 * outside)
        _weigh[chunks](y1, to, to2, first, g1, b1, n, *size, outside, outside, 1, True, span=wide, **over)
        _back[grid](to, w2, inner, y1, first, g1, b1, beta1, n, *size, outside, outside, 1, True, tile)
        _denormalise[grid](inner, y1, to, first, g1, beta1, n, outside, tile)
        wide = triton.next_power_of_2(3 * inside)
        _weigh[chunks](x, to, to1, first, g1, b1, n, *size, inside, outside, stride, False, span=wide, **over)
        grid = (x.numel() // inside // tile,)
        _back[grid](to, w1, back, g, first, g1, b1, beta1, n, *whole, inside, outside, stride, False, tile)
        return back, _kernel(to1, w1), gamma1, beta1, _kernel(to2, w2), gamma2, beta2, None, None, None, None


def _images(like: Tensor, channels: int, size: tuple[int, int]) -> Tensor:
    """Room for activations."""
    shape = (len(like), channels, *size)
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=torch.channels_last)


def _kernel(flat: Tensor, like: Tensor) -> Tensor:
    """The gradient of a kernel, which lies in memory as the kernel does."""
    outside, inside, *taps = like.shape
    return flat.view(outside, *taps, inside).permute(0, 3, 1, 2)


class FusedBlock(Block):
    """A block that trains in few launches; it evaluates as it always did. Fastest if all is channels-last."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        one, two = self.norms
        given = (self.first.weight, one.weight, one.bias, self.second.weight, two.weight, two.bias)
        return _Fused.apply(x, *given, one.running_mean, one.running_var, two.running_mean, two.running_var)
