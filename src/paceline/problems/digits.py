"""A real problem that needs no download: a small network on scikit-learn's handwritten digits, trained with Adam."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from paceline.traces import Objective, Schedule, Trace


def load_digits(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images and labels, then validation ones (a quarter of 1,797), pixels in [0, 1]."""
    from sklearn.datasets import load_digits as bundled  # pyright: ignore

    data = bundled()  # pyright: ignore
    images = torch.tensor(np.asarray(data.data) / 16.0, dtype=torch.float32)  # pyright: ignore
    labels = torch.tensor(np.asarray(data.target), dtype=torch.long)  # pyright: ignore
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    train, valid = order[450:], order[:450]
    return images[train], labels[train], images[valid], labels[valid]


def train_digits(
    schedule: Schedule, *, seed: int = 0, every: int = 10, batch: int = 64, name: str = "", width: int = 32
) -> Trace:
    """Train under a schedule and return the validation loss as a trace.

    The same seed gives the same weights to start from and the same batches.
    """
    images, labels, valid_images, valid_labels = load_digits()
    random = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    with torch.no_grad():
        for layer in model:
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=random)
                layer.bias.uniform_(-bound, bound, generator=random)
    optimiser = torch.optim.Adam(model.parameters())
    loss_of, steps, values = nn.CrossEntropyLoss(), list[int](), list[float]()
    for step in range(schedule.steps + 1):
        if step % every == 0:
            with torch.no_grad():
                steps.append(step)
                values.append(float(loss_of(model(valid_images), valid_labels)))
            if not np.isfinite(values[-1]) or step == schedule.steps:
                break
        for group in optimiser.param_groups:
            group["lr"] = schedule(step)
        rows = torch.randint(len(labels), (batch,), generator=random)
        optimiser.zero_grad()
        loss_of(model(images[rows]), labels[rows]).backward()
        optimiser.step()  # pyright: ignore[reportUnknownMemberType]
    observed: Float[np.ndarray, "observations"] = np.array(values)
    failed = not bool(np.isfinite(observed).all())
    return Trace(np.array(steps), observed, schedule, name=name, objective=Objective(transform="log"), failed=failed)
