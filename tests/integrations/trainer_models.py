"""Small models, their data, and arguments of a quiet Trainer."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, TrainingArguments

from paceline import Schedule
from tests.integrations.overfitting import Examples, network

SCHEDULE = Schedule.of("linear", 1e-2, 40)


class Counting(Dataset):
    """Sequences that go up by one, with some labels masked, so that batches hold different numbers of items."""

    def __init__(self, count: int = 42) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        tokens = (torch.arange(8) + i) % 16
        return {"input_ids": tokens, "labels": torch.where(torch.arange(8) < i % 5, -100, tokens)}


class Points(Dataset):
    def __init__(self) -> None:
        self.x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self) -> int:
        return 40

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"x": self.x[i], "labels": self.y[i]}


class Net(nn.Module):
    """A model that is none of theirs, with normalisation and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 2))

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        logits = self.net(x)
        loss = {} if labels is None else {"loss": nn.functional.cross_entropy(logits, labels)}
        return {**loss, "logits": logits}


class Labelled(Dataset):
    """Examples as a Trainer takes them."""

    def __init__(self, examples: Examples) -> None:
        self.x, self.y = examples

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        return {"x": self.x[i], "labels": self.y[i]}


class Overfitting(Net):
    """A model whose held-out loss turns up."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()


def language_model(dropout: float = 0.0) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return LlamaForCausalLM(LlamaConfig(vocab_size=16, attention_dropout=dropout, **sizes))


def arguments(folder: Any, **settings: Any) -> TrainingArguments:
    common = {"per_device_train_batch_size": 8, "max_steps": 40, "use_cpu": True, "disable_tqdm": True}
    quiet = {"report_to": [], "save_strategy": "no", "logging_strategy": "no", "learning_rate": 1e-2}
    return TrainingArguments(str(folder), **{**common, **quiet, "dataloader_pin_memory": False, **settings})


def flat(model: nn.Module) -> Tensor:
    return torch.cat([t.detach().double().flatten() for t in model.state_dict().values()])
