"""A residual network on CIFAR-10, trained as the paper trains it (the Keras example).

45,000 images are trained on. The last 5,000 of the training set are held out for validation. Images are padded, cropped
and mirrored on the device. Adam, batches of 128, an L2 penalty of 1e-4 on the kernels of convolutions. Within a seed
every method starts from the same weights and draws the same batches.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from benchmarks._cifar import cifar10, resnet
from paceline.training import DeviceBatches, TorchTraining

BATCH, HELD_OUT, PENALTY = 128, 5_000, 1e-4
TRACES = ("batches", "training loss", "validation loss", "validation error")


class Images(NamedTuple):
    """Standardised images and their classes."""

    x: Tensor
    y: Tensor

    def part(self, first: int, last: int) -> "Images":
        """Images `first` to `last`."""
        return Images(self.x[first:last], self.y[first:last])


class Data(NamedTuple):
    """Images to train on, images for decisions, and images for the report only."""

    train: Images
    valid: Images
    test: Images

    @property
    def train_sample(self) -> Images:
        """As many training images as are held out, without augmentation."""
        return self.train.part(0, len(self.valid.y))


@cache
def load_data(device: str) -> Data:
    """CIFAR-10, on the device."""
    x, y, x_test, y_test = cifar10(device)
    images = Images(x.contiguous(memory_format=torch.channels_last), y)
    test = Images(x_test.contiguous(memory_format=torch.channels_last), y_test)
    n = len(y) - HELD_OUT
    return Data(images.part(0, n), images.part(n, len(y)), test)


def network(depth: int, seed: int) -> nn.Sequential:
    """A residual network with the start values of the Keras example: normal, scaled by the number of inputs."""
    model = resnet(depth, seed)
    generator = torch.Generator().manual_seed(seed)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return model


def class_scores(model: nn.Module, x: Tensor) -> Tensor:
    """Class scores, computed in bf16 on a GPU and in float32 elsewhere: some processors offer bf16 and fail."""
    with torch.autocast(x.device.type, torch.bfloat16, enabled=x.is_cuda):
        return model(x).float()


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Cross-entropy. The penalty is the optimiser's."""
    return nn.functional.cross_entropy(class_scores(model, batch[0]), batch[1])


def error(model: nn.Module, images: Images) -> Tensor:
    """Share of images with a wrong class; half an image if there is none, so that the logarithm exists."""
    wrong = (class_scores(model, images.x).argmax(1) != images.y).sum()
    return wrong.clamp(min=0.5) / len(images.y)


def evaluation(trace: str, data: Data) -> Callable[[nn.Module], Tensor] | None:
    """The value that a run reports of its weights; None for the mean loss of its batches."""
    return {
        "batches": None,
        "training loss": lambda model: loss(model, data.train_sample),
        "validation loss": lambda model: loss(model, data.valid),
        "validation error": lambda model: error(model, data.valid),
    }[trace]


def make_training(data: Data, depth: int, seed: int, trace: str, every: int) -> TorchTraining:
    """One run.

    Args:
        data: the images.
        depth: of the network.
        seed: of its first weights, and of batches and augmentation.
        trace: one of `TRACES`, the value that is reported.
        every: steps between reports.
    """
    device = data.train.x.device
    model = network(depth, seed).to(device, memory_format=torch.channels_last)
    kernels = [layer.weight for layer in model.modules() if isinstance(layer, nn.Conv2d)]
    others = [p for p in model.parameters() if not any(p is kernel for kernel in kernels)]
    # the gradient of penalty * |w|^2 is 2 * penalty * w, which is what Adam's (coupled) weight decay adds
    groups = [{"params": kernels, "weight_decay": 2 * PENALTY}, {"params": others}]
    training = TorchTraining(
        model,
        torch.optim.Adam(groups, lr=1e-3, fused=device.type == "cuda"),
        batches=DeviceBatches(*data.train, size=BATCH, crop=4, flip=True),
        loss=loss,
        evaluate=evaluation(trace, data),
        every=every,
    )
    training.reseed(seed)
    return training


@torch.no_grad()
def final_measures(state: dict[str, Any], data: Data, depth: int) -> dict[str, dict[str, float]]:
    """Losses and errors of a finished run's weights, raw and averaged, without augmentation."""
    model = network(depth, 0).to(data.train.x.device, memory_format=torch.channels_last).eval()
    averaged = {k.removeprefix("module."): v for k, v in state["average"].items() if k.startswith("module.")}
    measures = {}
    for kind, weights in (("raw", state["model"]), ("averaged", averaged)):
        model.load_state_dict(weights)
        measures[kind] = {
            "training loss": float(loss(model, data.train_sample)),
            "validation loss": float(loss(model, data.valid)),
            "validation error": float(error(model, data.valid)),
            "test loss": float(loss(model, data.test)),
            "test accuracy": 1.0 - float(error(model, data.test)),
        }
    return measures
