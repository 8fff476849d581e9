"""A trainable whose checkpoint brings an old rate back, as in Ray's own bug."""

from pathlib import Path
from typing import Any

import torch
from ray import tune


class Descent(tune.Trainable):
    """Steepest descent on a quadratic. The checkpoint holds the optimiser's state, and with it the rate: ray's bug."""

    def setup(self, config: dict[str, Any]) -> None:
        torch.set_num_threads(1)
        self.weights = torch.nn.Parameter(torch.ones(4))
        self.optimizer = torch.optim.SGD([self.weights], lr=config["lr"])

    def loss(self) -> torch.Tensor:
        return (self.weights.square() * torch.tensor([1.0, 0.5, 0.1, 0.02])).sum()

    def step(self) -> dict[str, float]:
        before = self.weights.detach().clone()
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()
        assert self.weights.grad is not None
        used = float((before - self.weights.detach())[0] / self.weights.grad[0])  # the rate that moved the weights
        return {"loss": float(self.loss().detach()), "lr": used}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        torch.save([self.weights.detach(), self.optimizer.state_dict()], Path(checkpoint_dir) / "state.pt")

    def load_checkpoint(self, checkpoint: str) -> None:
        weights, state = torch.load(Path(checkpoint) / "state.pt")
        self.weights.data.copy_(weights)
        self.optimizer.load_state_dict(state)
