"""Residual networks on CIFAR-10 whose training step is some sixty launches in place of a thousand.

The programs are in `_cifar_kernels.cu`, compiled where they are first used. Numbers are those of the plain network, up
to rounding; parameters and state are the plain network's too.
"""

import ctypes
import hashlib
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks._cifar import Block

SOURCE = Path(__file__).with_suffix(".cu")
NVCC = ("nvcc", "-O3", "-std=c++17", "-gencode=arch=compute_90,code=sm_90", "-shared", "-Xcompiler", "-fPIC")
TOGETHER, AT_A_TIME = 4, 1_000  # images that a program may have; images that are evaluated in one go
_P, _I = ctypes.c_void_p, ctypes.c_int


def _structure(name: str, fields: "dict[str, Any]") -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


_Norm = _structure("Norm", dict.fromkeys(("sums", "gamma", "beta", "mean", "variance"), _P))
_Forward = _structure(
    "Forward",
    {"x": _P, "channel_step": _I, "pixel_step": _I, "y": _P, "norm": _Norm, "skip": _P, "out": _P, "w": _P, "to": _P}
    | {"sums": _P, "images": _I, "across": _I, "evaluating": _I},
)
_Head = _structure(
    "Head",
    {"y": _P, "norm": _Norm, "skip": _P}
    | dict.fromkeys(("w", "b", "labels", "loss", "logits", "to_w", "to_b", "g", "found"), _P)
    | {"images": _I, "across": _I, "evaluating": _I},
)
_Backward = _structure(
    "Backward",
    {"g": _P, "y": _P, "norm": _Norm, "found": _P, "x": _P, "channel_step": _I, "pixel_step": _I, "input": _P}
    | {"under": _P, "below": _Norm, "below_found": _P, "around": _P, "w": _P, "to_w": _P, "to_gamma": _P}
    | {"to_beta": _P, "to": _P}
    | {"images": _I, "across": _I},
)
LAYERS = 64
_Prepare = _structure("Prepare", {"from": _P * LAYERS, "to": _P * LAYERS, "counts": _I * LAYERS, "layers": _I})


@cache
def library(compiler: tuple[str, ...] = NVCC) -> ctypes.CDLL:
    """The programs, compiled unless they have been."""
    known = hashlib.sha256(SOURCE.read_bytes() + " ".join(compiler).encode()).hexdigest()[:16]
    target = Path(tempfile.gettempdir()) / f"paceline-cifar-{known}.so"
    if not target.exists():
        with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".so", delete=False) as made:
            subprocess.run([*compiler, "-o", made.name, str(SOURCE)], check=True)
        Path(made.name).rename(target)  # others may compile it at the same time
    return ctypes.CDLL(str(target))


class _Layer(NamedTuple):
    """A convolution and its normalisation, with room for what is summed."""

    weight: Tensor
    norm: nn.BatchNorm2d
    kernels: Tensor
    sums: Tensor
    found: Tensor
    to_weight: Tensor
    to_gamma: Tensor
    to_beta: Tensor

    @property
    def lines(self) -> Any:
        """The normalisation, for a program."""
        norm = self.norm
        return _Norm(*map(_at, (self.sums, norm.weight, norm.bias, norm.running_mean, norm.running_var)))


def _at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


class _Pass:
    """One way through the network, and back."""

    def __init__(self, model: "FusedNetwork", x: Tensor) -> None:
        if len(x) % TOGETHER or x.shape[1:] != (3, 32, 32) or x.dtype != torch.float32:
            given = f"{tuple(x.shape)}, {x.dtype}"
            raise ValueError(f"expected a multiple of {TOGETHER} images of 3 x 32 x 32, float32, got {given}")
        self.model, self.x = model, x if _steps(x) else x.contiguous()
        self.evaluating = not model.training
        pairs = model.convolutions()
        head: nn.Linear = model[-1]  # pyright: ignore
        outside = [len(conv.weight) for conv, _ in pairs]
        sizes = [conv.weight.numel() for conv, _ in pairs]
        whole = [size * max(16, conv.in_channels) // conv.in_channels for size, (conv, _) in zip(sizes, pairs, strict=True)]
        kernels = x.new_empty(sum(whole), dtype=torch.bfloat16).split(whole)
        sums = _room([2 * count for count in (*outside, *outside)], x, torch.long, model.training)
        ends = [head.weight.numel(), len(head.bias), 1]
        room = _room([*sizes, *outside, *outside, *ends], x, torch.float32, model.training)
        n = len(pairs)
        parts = (kernels, sums[:n], sums[n:], room[:n], room[n : 2 * n], room[2 * n : 3 * n])
        self.layers = [
            _Layer(_channels_last(conv.weight), norm, *own)
            for (conv, norm), *own in zip(pairs, *parts, strict=True)
        ]
        self.head, (self.to_w, self.to_b, self.loss) = head, room[3 * n :]
        self._prepare()

    def _prepare(self) -> None:
        """Kernels as bf16, for all layers at once."""
        layers = self.layers
        given = _Prepare(
            **{"from": (_P * LAYERS)(*(_at(layer.weight) for layer in layers))},
            to=(_P * LAYERS)(*(_at(layer.kernels) for layer in layers)),
            counts=(_I * LAYERS)(*(layer.kernels.numel() for layer in layers)),
            layers=len(layers),
        )
        _check(library(self.model.compiler).kernels(ctypes.byref(given), _stream(self.x)))

    def forward(self, labels: Tensor | None = None) -> Tensor:
        """The loss, with all that the way back wants; or class scores, while evaluating."""
        x, layers = self.x, self.layers
        y = self._convolved(layers[0], x=x.data_ptr(), **_steps(x))
        self.ys, self.outs = [y], []
        skip: Tensor | None = None
        for first, second in zip(layers[1::2], layers[2::2], strict=True):
            out = torch.empty_like(y)
            around = {"skip": _at(skip), "across": skip is not None and skip.shape != y.shape}
            inner = self._convolved(first, layers[len(self.ys) - 1], y, out=_at(out), **around)
            self._keep(out, inner)
            y = self._convolved(second, first, inner)
            self._keep(None, y)
            skip = out
        assert skip is not None
        last, programs = layers[-1], library(self.model.compiler)
        scores = x.new_empty(len(x) if self.evaluating else 0, len(self.head.weight))
        self.g = torch.empty_like(y)
        given = _Head(
            y=_at(y), norm=last.lines, skip=_at(skip), w=_at(self.head.weight), b=_at(self.head.bias),
            labels=_at(labels), loss=_at(self.loss), logits=_at(scores), to_w=_at(self.to_w), to_b=_at(self.to_b),
            g=_at(self.g), found=_at(last.found), images=len(x), across=skip.shape != y.shape,
            evaluating=self.evaluating,
        )  # fmt: skip
        _check(programs.head(ctypes.byref(given), _stream(x)))
        return scores if self.evaluating else self.loss[0]

    def _keep(self, out: Tensor | None, y: Tensor) -> None:
        """What the way back reads."""
        self.ys.append(self.x if self.evaluating else y)
        if out is not None and not self.evaluating:
            self.outs.append(out)

    def _convolved(self, layer: _Layer, before: _Layer | None = None, y: Tensor | None = None, **given: Any) -> Tensor:
        outside, inside = layer.weight.shape[:2]
        side = 32 if y is None else y.shape[1] * inside // outside
        to = torch.empty(len(self.x), side, side, outside, dtype=torch.bfloat16, device=self.x.device)
        norm = {} if before is None else {"norm": before.lines}
        asked = _Forward(
            **given, **norm, y=_at(y), w=_at(layer.kernels), to=_at(to), sums=_at(layer.sums),
            images=len(self.x), evaluating=self.evaluating,
        )  # fmt: skip
        programs = library(self.model.compiler)
        _check(programs.forward(ctypes.byref(asked), max(inside, 16), outside, _stream(self.x)))
        return to

    def backward(self) -> list[Tensor]:
        """Gradients of the loss at the network's parameters, in the order of `FusedNetwork.given`."""
        layers, ys, g = self.layers, self.ys, self.g
        for i in range(len(layers) - 1, 0, -2):
            first, second, before = layers[i - 1], layers[i], layers[i - 2]
            inner = self._back(second, ys[i], g, first, ys[i - 1])
            out = self.outs[i // 2 - 1]
            around = {"input": _at(out), "around": _at(g), "across": g.shape != out.shape}
            g = self._back(first, ys[i - 1], inner, before, ys[i - 2], **around)
        self._back(layers[0], ys[0], g, x=self.x.data_ptr(), **_steps(self.x))
        found = [
            part
            for layer in layers
            for part in (_kernel(layer.to_weight, layer.weight), layer.to_gamma, layer.to_beta)
        ]
        return [*found, self.to_w.view_as(self.head.weight), self.to_b]

    def _back(
        self, layer: _Layer, y: Tensor, g: Tensor, below: _Layer | None = None, under: Tensor | None = None, **given: Any
    ) -> Tensor:
        to = torch.empty_like(under) if under is not None else g
        if below is not None:
            given |= {"under": _at(under), "below": below.lines, "below_found": _at(below.found), "to": _at(to)}
        asked = _Backward(
            **given, g=_at(g), y=_at(y), norm=layer.lines, found=_at(layer.found), w=_at(layer.kernels),
            to_w=_at(layer.to_weight), to_gamma=_at(layer.to_gamma), to_beta=_at(layer.to_beta), images=len(self.x),
        )  # fmt: skip
        outside, inside = layer.weight.shape[:2]
        programs = library(self.model.compiler)
        _check(programs.backward(ctypes.byref(asked), max(inside, 16), outside, _stream(self.x)))
        return to


class _Loss(torch.autograd.Function):
    """Cross-entropy of a batch."""

    @staticmethod
    def forward(ctx: Any, model: "FusedNetwork", x: Tensor, labels: Tensor, *_: Tensor) -> Tensor:
        """The mean; its gradients are those at the parameters only."""
        ctx.going = _Pass(model, x)
        return ctx.going.forward(labels)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The loss is what is differentiated, so its own gradient is 1."""
        return None, None, None, *ctx.going.backward()


class FusedNetwork(nn.Sequential):
    """A network of `benchmarks._cifar.resnet` in few launches: its loss while it trains, its scores otherwise."""

    compiler: tuple[str, ...] = NVCC

    def convolutions(self) -> "list[tuple[nn.Conv2d, nn.BatchNorm2d]]":
        """Convolutions with their normalisations, from the first to the last."""
        pairs: list[Any] = [(self[0], self[1])]
        for block in self:
            if isinstance(block, Block):
                pairs += [(block.first, block.norms[0]), (block.second, block.norms[1])]
        return pairs

    def given(self) -> Sequence[Tensor]:
        """All parameters: kernel, slope and offset of each convolution, then the linear layer."""
        pairs = [part for conv, norm in self.convolutions() for part in (conv.weight, norm.weight, norm.bias)]
        head: nn.Linear = self[-1]  # pyright: ignore
        return [*pairs, head.weight, head.bias]

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of a batch to train on."""
        return _Loss.apply(self, x, labels, *self.given())

    def forward(self, x: Tensor) -> Tensor:
        """Class scores, by the running moments."""
        if self.training:
            raise RuntimeError("expected a network that evaluates, got one that trains: ask for its loss(x, labels)")
        return torch.cat([_Pass(self, part).forward() for part in x.split(AT_A_TIME)])


def _room(counts: list[int], like: Tensor, dtype: torch.dtype, wanted: bool) -> Sequence[Tensor]:
    """Zeros to add to, each part at an address that four numbers can be added to at a time."""
    starts = [0, *accumulate(-(-count // 4) * 4 for count in counts)]
    whole = like.new_zeros(starts[-1] if wanted else 0, dtype=dtype)
    return [whole[start : start + count] for start, count in zip(starts, counts, strict=False)]


def _steps(x: Tensor) -> dict[str, int]:
    """How far apart channels and pixels of images lie; nothing where the programs cannot read them."""
    image, channel, row, column = x.stride()
    if image != x[0].numel() or row != column * x.shape[3]:
        return {}
    return {"channel_step": channel, "pixel_step": column}


def _channels_last(weight: Tensor) -> Tensor:
    outside, inside, *taps = weight.shape
    if weight.stride() != (9 * inside, 1, 3 * inside, inside) or taps != [3, 3]:
        raise ValueError(f"expected kernels of 3 x 3, channels last in memory, got strides {weight.stride()}")
    return weight.detach()


def _kernel(flat: Tensor, like: Tensor) -> Tensor:
    """The gradient of a kernel, which lies in memory as the kernel does."""
    outside, inside, *taps = like.shape
    return flat.view(outside, *taps, inside).permute(0, 3, 1, 2)


def _stream(x: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else None)


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"CUDA error {status} as a program was started")
