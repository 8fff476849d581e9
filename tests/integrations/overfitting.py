"""Few examples with wrong labels among them: a network learns them by heart, and its held-out loss turns up."""

import torch
from torch import Tensor, nn

Examples = tuple[Tensor, Tensor]


def examples(count: int, seed: int, wrong: float) -> Examples:
    """Points with one of two labels, of which a share is wrong."""
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=source)
    is_wrong = torch.rand(count, generator=source) < wrong
    return x, ((x.sum(1) > 0) ^ is_wrong).long()


def few() -> Examples:
    return examples(32, 0, wrong=0.3)


def held_out() -> Examples:
    return examples(64, 1, wrong=0.0)


def network() -> nn.Sequential:
    """A network that is large for so few examples, with the same weights each time."""
    net = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
    for i, parameter in enumerate(net.parameters()):
        nn.init.normal_(parameter, std=0.4, generator=torch.Generator().manual_seed(i))
    return net


@torch.no_grad()
def held_out_loss(net: nn.Module) -> float:
    """The loss on the held-out examples."""
    was_training = net.training
    x, y = held_out()
    loss = float(nn.functional.cross_entropy(net.eval()(x), y))
    net.train(was_training)
    return loss
