"""Residual networks on CIFAR-10 whose training step is some sixty launches in place of a thousand.

The programs are in `_cifar_kernels.cu`, compiled where they are first used. Numbers are those of the plain network, up
to rounding. All kernels are one parameter and all that is not a kernel another, so that the optimiser and the average
of the weights are few launches too.
"""

import ctypes
import hashlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks._cifar import Block

SOURCE = Path(__file__).with_suffix(".cu")
NVCC = ("nvcc", "-O3", "-std=c++17", "-gencode=arch=compute_90,code=sm_90", "-shared", "-Xcompiler", "-fPIC")
TOGETHER, AT_A_TIME = 4, 1_000  # images that a program may have; images that are evaluated in one go
CLASSES, THERE, MADE = 10, 3, 16  # classes; channels of the first convolution, and how many its program has
_P, _I = ctypes.c_void_p, ctypes.c_int


def _structure(name: str, fields: "dict[str, Any]") -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


_Norm = _structure("Norm", dict.fromkeys(("sums", "gamma", "beta", "mean", "variance"), _P))
_Prepare = _structure("Prepare", {"given": _P, "to": _P, "count": _I})
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
    | {"to_beta": _P, "to": _P, "images": _I, "across": _I},
)


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


def pairs(model: nn.Sequential) -> "Iterator[tuple[nn.Conv2d, nn.BatchNorm2d]]":
    """Convolutions of a plain network with their normalisations, from the first to the last."""
    yield model[0], model[1]  # pyright: ignore
    for block in model:
        if isinstance(block, Block):
            yield block.first, block.norms[0]  # pyright: ignore
            yield block.second, block.norms[1]  # pyright: ignore


class FusedNetwork(nn.Module):
    """A network of `benchmarks._cifar.resnet` in few launches: its loss while it trains, its scores otherwise.

    Args:
        plain: the network whose weights and statistics it begins with.
    """

    compiler: tuple[str, ...] = NVCC
    moments: Tensor

    def __init__(self, plain: nn.Sequential) -> None:
        super().__init__()
        self.sizes = [tuple(conv.weight.shape[:2]) for conv, _ in pairs(plain)]
        state = flat(plain)
        self.kernels, self.others = (nn.Parameter(state[name]) for name in ("kernels", "others"))
        self.register_buffer("moments", state["moments"])

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of a batch to train on."""
        return _Loss.apply(self, x, labels, self.kernels, self.others)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores, by the running moments."""
        if self.training:
            raise RuntimeError("expected a network that evaluates, got one that trains: ask for its loss(x, labels)")
        return torch.cat([_Pass(self, part).forward() for part in x.split(AT_A_TIME)])


def _tensors(plain: nn.Sequential) -> dict[str, list[Tensor]]:
    """What a plain network has, in the order of a fused one; kernels are (outside, row, column, inside) there."""
    head: nn.Linear = plain[-1]  # pyright: ignore
    both = list(pairs(plain))
    others = [p for _, norm in both for p in (norm.weight, norm.bias)] + [head.weight, head.bias]
    return {
        "kernels": [conv.weight.detach().permute(0, 2, 3, 1) for conv, _ in both],
        "others": [p.detach() for p in others],
        "moments": [p for _, norm in both for p in (norm.running_mean, norm.running_var)],  # pyright: ignore
    }


def flat(plain: nn.Sequential) -> dict[str, Tensor]:
    """A plain network as the state of a fused one."""
    return {name: torch.cat([t.reshape(-1) for t in tensors]) for name, tensors in _tensors(plain).items()}


def fill(plain: nn.Sequential, state: Mapping[str, Tensor]) -> None:
    """Give a plain network the state of a fused one."""
    for name, tensors in _tensors(plain).items():
        for tensor, part in zip(tensors, state[name].split([t.numel() for t in tensors]), strict=True):
            tensor.copy_(part.view(tensor.shape))


class _Layer(NamedTuple):
    """Where things of a convolution and its normalisation are in memory."""

    inside: int
    outside: int
    norm: Any
    w: int
    sums: int
    found: int
    to_w: int
    to_gamma: int
    to_beta: int


class _Pass:
    """One way through the network, and back."""

    def __init__(self, model: FusedNetwork, x: Tensor) -> None:
        if len(x) % TOGETHER or x.shape[1:] != (3, 32, 32) or x.dtype != torch.float32:
            given = f"{tuple(x.shape)}, {x.dtype}"
            raise ValueError(f"expected a multiple of {TOGETHER} images of 3 x 32 x 32, float32, got {given}")
        self.x = x if _steps(x) else x.contiguous()
        self.evaluating, self.programs = not model.training, library(model.compiler)
        self.stream = ctypes.c_void_p(torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else None)
        channels, kernels, others = sum(outside for outside, _ in model.sizes), model.kernels, model.others
        more = 9 * (MADE - THERE) * model.sizes[0][0]
        self.w = x.new_empty(kernels.numel() + more, dtype=torch.bfloat16)
        self.sums = x.new_zeros(0 if self.evaluating else 4 * channels, dtype=torch.long)
        room = x.new_zeros(0 if self.evaluating else kernels.numel() + others.numel() + 1)
        counts = [0, 0, 0] if self.evaluating else [kernels.numel(), others.numel(), 1]
        self.to_kernels, self.to_others, self.loss = room.split(counts)
        self.layers, self.head = [], (0, 0)
        self._start("kernels", _Prepare(kernels.data_ptr(), self.w.data_ptr(), self.w.numel()))
        self._lay_out(model)

    def _lay_out(self, model: FusedNetwork) -> None:
        """Where each layer's things are: one layer's after the other's."""
        w, to_w, others, to_others, moments, sums = (
            tensor.data_ptr()
            for tensor in (self.w, self.to_kernels, model.others, self.to_others, model.moments, self.sums)
        )
        for outside, inside in model.sizes:
            one = 4 * outside  # bytes of a number for each channel
            norm = _Norm(sums, others, others + one, moments, moments + one)
            made = max(inside, MADE)
            self.layers.append(_Layer(made, outside, norm, w, sums, sums + 4 * one, to_w, to_others, to_others + one))
            w, to_w, sums = w + 2 * 9 * made * outside, to_w + 4 * 9 * inside * outside, sums + 8 * one
            others, to_others, moments = others + 2 * one, to_others + 2 * one, moments + 2 * one
        self.head = others, to_others

    def _start(self, program: str, given: Any, *sizes: int) -> None:
        status = getattr(self.programs, program)(ctypes.byref(given), *sizes, self.stream)
        if status:
            raise RuntimeError(f"CUDA error {status} as a program was started")

    def forward(self, labels: Tensor | None = None) -> Tensor:
        """The loss, with all that the way back wants; or class scores, while evaluating."""
        x, layers = self.x, self.layers
        y = self._convolved(layers[0], None, None, x=x.data_ptr(), **_steps(x))
        self.ys, self.outs = [y], list[Tensor]()
        skip: Tensor | None = None
        for before, first, second in zip(layers[::2], layers[1::2], layers[2::2], strict=False):
            out = torch.empty_like(y)
            around = {"skip": _at(skip), "across": skip is not None and skip.shape != y.shape}
            inner = self._convolved(first, before, y, out=_at(out), **around)
            y, skip = self._convolved(second, first, inner), out
            if not self.evaluating:
                self.ys += [inner, y]
                self.outs.append(out)
        assert skip is not None
        scores = x.new_empty(len(x) if self.evaluating else 0, CLASSES)
        self.g = torch.empty_like(y)
        w, to_w = self.head
        size = 4 * CLASSES * layers[-1].outside
        given = _Head(
            y=_at(y), norm=layers[-1].norm, skip=_at(skip), w=w, b=w + size, labels=_at(labels), loss=_at(self.loss),
            logits=_at(scores), to_w=to_w, to_b=to_w + size, g=_at(self.g), found=layers[-1].found, images=len(x),
            across=skip.shape != y.shape, evaluating=self.evaluating,
        )  # fmt: skip
        self._start("head", given)
        return scores if self.evaluating else self.loss[0]

    def _convolved(self, layer: _Layer, before: _Layer | None, y: Tensor | None, **given: Any) -> Tensor:
        side = 32 if y is None else y.shape[1] * layer.inside // layer.outside
        to = torch.empty(len(self.x), side, side, layer.outside, dtype=torch.bfloat16, device=self.x.device)
        if before is not None:
            given |= {"norm": before.norm, "y": _at(y)}
        given |= {"w": layer.w, "to": _at(to), "sums": layer.sums}
        asked = _Forward(**given, images=len(self.x), evaluating=self.evaluating)
        self._start("forward", asked, layer.inside, layer.outside)
        return to

    def backward(self) -> tuple[Tensor, Tensor]:
        """Gradients of the loss at the network's two parameters."""
        layers, ys, g = self.layers, self.ys, self.g
        for i in range(len(layers) - 1, 0, -2):
            inner = self._back(layers[i], ys[i], g, layers[i - 1], ys[i - 1])
            out = self.outs[i // 2 - 1]
            around = {"input": _at(out), "around": _at(g), "across": g.shape != out.shape}
            g = self._back(layers[i - 1], ys[i - 1], inner, layers[i - 2], ys[i - 2], **around)
        self._back(layers[0], ys[0], g, None, None, x=self.x.data_ptr(), **_steps(self.x))
        return self.to_kernels.view(-1), self.to_others.view(-1)  # views of them, which autograd need not copy

    def _back(
        self, layer: _Layer, y: Tensor, g: Tensor, below: _Layer | None, under: Tensor | None, **given: Any
    ) -> Tensor:
        to = g if under is None else torch.empty_like(under)
        if below is not None:
            given |= {"under": _at(under), "below": below.norm, "below_found": below.found, "to": _at(to)}
        given |= {"g": _at(g), "y": _at(y), "norm": layer.norm, "found": layer.found}
        given |= {"w": layer.w, "to_w": layer.to_w, "to_gamma": layer.to_gamma, "to_beta": layer.to_beta}
        self._start("backward", _Backward(**given, images=len(self.x)), layer.inside, layer.outside)
        return to


class _Loss(torch.autograd.Function):
    """Cross-entropy of a batch."""

    @staticmethod
    def forward(ctx: Any, model: FusedNetwork, x: Tensor, labels: Tensor, *_: Tensor) -> Tensor:
        """The mean."""
        ctx.going = _Pass(model, x)
        return ctx.going.forward(labels)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        """The loss is what is differentiated, so its own gradient is 1."""
        return None, None, None, *ctx.going.backward()


def _at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _steps(x: Tensor) -> dict[str, int]:
    """How far apart channels and pixels of images lie; nothing where the programs cannot read them."""
    image, channel, row, column = x.stride()
    if image != x[0].numel() or row != column * x.shape[3]:
        return {}
    return {"channel_step": channel, "pixel_step": column}
