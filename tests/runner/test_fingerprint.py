"""A fingerprint changes with what a training does, and with nothing else."""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

from paceline.runner.fingerprint import Fingerprint, fingerprint_of_factory, fingerprint_of_training
from paceline.training import TorchTraining
from paceline.tuner.changed_training import list_changes

ROWS = TensorDataset(torch.arange(40.0).reshape(20, 2))
DECAY = 0.1


def scaled(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def loss(model: nn.Module, batch: list[torch.Tensor]) -> torch.Tensor:
    return scaled(model(batch[0])).square().mean()


def training(width: int = 3, split: int = 0, **settings: float) -> TorchTraining:
    model = nn.Linear(2, width)
    rows = random_split(ROWS, [15, 5], torch.Generator().manual_seed(split))[0]
    optimizer = torch.optim.AdamW(model.parameters(), **{"weight_decay": DECAY, **settings})
    return TorchTraining(model, optimizer, batches=DataLoader(rows, batch_size=5), loss=loss)


def changed(before: TorchTraining, now: TorchTraining) -> list[str]:
    return list_changes(fingerprint_of_training(before), fingerprint_of_training(now))


def test_settings_of_the_optimiser_are_told_by_name_and_its_rate_is_not() -> None:
    assert changed(training(), training(weight_decay=0.2, lr=1.0)) == ["weight_decay was 0.1, and is 0.2"]


def test_shapes_and_splits_of_the_data_are_told_and_initial_weights_are_not() -> None:
    assert changed(training(), training()) == []
    (shapes,) = changed(training(), training(width=4))
    assert shapes.startswith("parameters was 2 tensors of 9 numbers (shapes ")
    (split,) = changed(training(), training(split=1))
    assert split.startswith("data was Subset of 15 rows (")


def test_a_training_of_ones_own_has_no_more_than_code() -> None:
    class Own:
        def advance(self, schedule, stop):
            yield stop, 1.0

        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    assert fingerprint_of_training(Own()) == {"training": {}}
    (code,) = (names for group, names in fingerprint_of_factory(lambda: Own()).items() if group.startswith("code"))
    assert "the factory" in code


def code_of(factory: Callable) -> Fingerprint:
    return fingerprint_of_factory(factory)


def compiled(source: str) -> Callable:
    names = {"__name__": "script"}
    exec(compile(source, "script.py", "exec"), names)
    return names["make"]


SCRIPT = """
DECAY = 0.1

class Net:
    def forward(self, x):
        return 2 * x

def loss(model, batch):
    return model.forward(batch)

def make():
    return Net(), loss, DECAY
"""


def test_code_that_the_factory_uses_is_followed_and_comments_are_not() -> None:
    before = code_of(compiled(SCRIPT))
    assert list_changes(before, code_of(compiled("\n\n# a comment\n" + SCRIPT))) == []
    cases = {
        ("DECAY = 0.1", "DECAY = 0.2"): "DECAY was 0.1, and is 0.2",
        ("2 * x", "3 * x"): "the code of Net.forward has changed",
        ("model.forward(batch)", "-model.forward(batch)"): "the code of loss has changed",
        ("Net(), loss", "Net(), None, loss"): "the code of the factory has changed",
    }
    for (old, new), expected in cases.items():
        assert list_changes(before, code_of(compiled(SCRIPT.replace(old, new)))) == [expected]


def test_arguments_and_values_around_a_function_count_and_what_it_counts_itself_does_not() -> None:
    assert list_changes(code_of(partial(training, width=3)), code_of(partial(training, width=4))) == [
        "argument width was 3, and is 4"
    ]

    def factory(decay: float) -> Callable:
        calls = 0

        def make() -> tuple[float, int]:
            nonlocal calls
            calls += 1
            return decay, calls

        return make

    first = factory(0.1)
    before = code_of(first)
    first()
    assert list_changes(before, code_of(first)) == []
    assert list_changes(before, code_of(factory(0.2))) == ["decay was 0.1, and is 0.2"]


def test_what_cannot_be_looked_into_has_no_fingerprint() -> None:
    assert not any(fingerprint_of_factory(torch.nn.Linear).values())
