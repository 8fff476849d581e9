"""A handful of random images in place of CIFAR-10."""

import torch

from experiments._cifar_training import Data, Images


def images(count: int, seed: int) -> Images:
    """Noise with a little of the class in every pixel."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(10, (count,), generator=generator)
    return Images(torch.randn(count, 3, 8, 8, generator=generator) + 0.3 * y[:, None, None, None], y)


def few_images() -> Data:
    """A batch to train on, and some for validation and for the report."""
    return Data(images(128, 0), images(64, 1), images(64, 2))
