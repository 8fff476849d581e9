"""A residual network on CIFAR-10 as the paper trains it (Keras' example), and what its weights are worth at the end.

45,000 images are trained on, the last 5,000 of the training set held out. Images are padded, cropped and mirrored on
the device; Adam, batches of 128; an L2 penalty of 1e-4 on the kernels of convolutions, inside the loss. Within a seed
every method starts from the same weights and sees the same batches.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks._cifar import cifar10, resnet
from experiments._cifar_kernels import FusedNetwork, fill
from paceline.training import DeviceBatches, TorchTraining

BATCH, HELD_OUT, PENALTY = 128, 5_000, 1e-4
TRACES = ("batches", "training loss", "validation loss", "validation error")


class Images(NamedTuple):
    """Standardised images and their classes."""

    x: Tensor
    y: Tensor

    def part(self, first: int, last: int) -> "Images":
        """Some of them."""
        return Images(self.x[first:last], self.y[first:last])


class Data(NamedTuple):
    """What is trained on, what decisions may look at, and what only the report does."""

    train: Images
    valid: Images
    test: Images

    @property
    def seen(self) -> Images:
        """As many of the training images as are held out, to be looked at as they are."""
        return self.train.part(0, len(self.valid.y))


@cache
def data(device: str) -> Data:
    """CIFAR-10, on the device."""
    x, y, x_test, y_test = cifar10(device)
    images = Images(x.contiguous(memory_format=torch.channels_last), y)
    test = Images(x_test.contiguous(memory_format=torch.channels_last), y_test)
    n = len(y) - HELD_OUT
    return Data(images.part(0, n), images.part(n, len(y)), test)


def network(depth: int, seed: int) -> nn.Sequential:
    """A residual network with the start values of the Keras example: normal, by the number of inputs (He et al.)."""
    model = resnet(depth, seed)
    generator = torch.Generator().manual_seed(seed)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return model


def logits(model: nn.Module, x: Tensor) -> Tensor:
    """Class scores, computed in bf16 on a GPU; elsewhere in float32, since some processors promise bf16 and fail."""
    with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
        return model(x).float()


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross-entropy; the penalty is the optimiser's."""
    if isinstance(model, FusedNetwork) and model.training:
        return model.loss(*batch)
    return nn.functional.cross_entropy(logits(model, batch[0]), batch[1])


def error(model: nn.Module, images: Images) -> Tensor:
    """Share of images put into a wrong class; half an image where there is none, so that its logarithm exists."""
    wrong = (logits(model, images.x).argmax(1) != images.y).sum()
    return wrong.clamp(min=0.5) / len(images.y)


def observed(trace: str, given: Data) -> "Callable[[nn.Module], Tensor] | None":
    """What a run reports of its weights; nothing for the mean loss of its batches."""
    return {
        "batches": None,
        "training loss": lambda model: loss(model, given.seen),
        "validation loss": lambda model: loss(model, given.valid),
        "validation error": lambda model: error(model, given.valid),
    }[trace]


def training(given: Data, depth: int, seed: int, trace: str, every: int) -> TorchTraining:
    """One run; `trace` is one of `TRACES`."""
    model: nn.Module = network(depth, seed).to(given.train.x.device, memory_format=torch.channels_last)
    if given.train.x.is_cuda:
        model = FusedNetwork(model)
        kernels, others = [model.kernels], [model.others]
    else:
        kernels = [layer.weight for layer in model.modules() if isinstance(layer, nn.Conv2d)]
        others = [p for p in model.parameters() if not any(p is kernel for kernel in kernels)]
    # the gradient of penalty * |w|^2 is 2 * penalty * w, which is what Adam's (coupled) weight decay adds
    groups = [{"params": kernels, "weight_decay": 2 * PENALTY}, {"params": others}]
    made = TorchTraining(
        model,
        torch.optim.Adam(groups, lr=1e-3, fused=given.train.x.is_cuda),
        batches=DeviceBatches(*given.train, size=BATCH, crop=4, flip=True),
        loss=loss,
        evaluate=observed(trace, given),
        every=every,
    )
    made.reseed(seed)
    return made


@torch.no_grad()
def worth(state: dict[str, Any], given: Data, depth: int) -> dict[str, dict[str, float]]:
    """Losses and errors of a finished run's weights, raw and averaged, without augmentation."""
    model = network(depth, 0).to(given.train.x.device, memory_format=torch.channels_last).eval()
    fill_in = fill if "kernels" in state["model"] else nn.Module.load_state_dict
    averaged = {k.removeprefix("module."): v for k, v in state["average"].items() if k.startswith("module.")}
    found = {}
    for of, weights in (("raw", state["model"]), ("averaged", averaged)):
        fill_in(model, weights)
        found[of] = {
            "training loss": float(loss(model, given.seen)),
            "validation loss": float(loss(model, given.valid)),
            "validation error": float(error(model, given.valid)),
            "test loss": float(loss(model, given.test)),
            "test accuracy": 1.0 - float(error(model, given.test)),
        }
    return found
