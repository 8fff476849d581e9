"""Steps between observations, given in steps or in epochs."""

from collections.abc import Iterator

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from paceline import TorchTraining
from paceline.errors import InputError
from paceline.traces import Schedule
from paceline.training import BatchGroups
from paceline.training.epochs import steps_between

ROWS = TensorDataset(torch.arange(10.0)[:, None])
LOADER = DataLoader(ROWS, batch_size=2)


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[torch.Tensor]:
        yield from torch.ones(4, 1)


@pytest.mark.parametrize(
    ("every", "steps"),
    [(None, None), (7, 7), ("1 epoch", 5), ("2 epochs", 10), ("0.5 epochs", 2), ("0.2 epochs", 1), ("1.4 epochs", 7)],
)
def test_epochs_are_as_many_steps_as_they_have_batches(every, steps: int | None) -> None:
    assert steps_between(every, LOADER) == steps


def test_an_epoch_of_accumulated_gradients_has_as_many_steps_as_groups() -> None:
    assert steps_between("1 epoch", BatchGroups(LOADER, 2)) == 3 == len(list(BatchGroups(LOADER, 2)))


@pytest.mark.parametrize("every", ["epoch", "1", "-1 epoch", "1e9 epochs", "one epoch", "nan epochs", "", "1 epoch "])
def test_other_text_is_refused_with_what_to_write(every: str) -> None:
    with pytest.raises(InputError, match='every must be a number of steps, or epochs such as "1 epoch"'):
        steps_between(every, LOADER)


def test_less_than_a_step_is_refused() -> None:
    with pytest.raises(InputError, match=r"every must be one step or more, got '0\.01 epochs'"):
        steps_between("0.01 epochs", LOADER)


@pytest.mark.parametrize("batches", [DataLoader(Stream()), BatchGroups(DataLoader(Stream()), 2), iter([1])])
def test_batches_without_a_length_are_refused_with_what_to_give(batches) -> None:
    assert steps_between(3, batches) == 3
    with pytest.raises(InputError, match=r"needs to know how many batches an epoch has.*give `every` in steps"):
        steps_between("1 epoch", batches)


def test_a_training_is_observed_at_the_ends_of_epochs() -> None:
    model = torch.nn.Linear(1, 1)
    training = TorchTraining(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        batches=LOADER,
        loss=lambda model, batch: model(batch[0]).square().mean(),
        evaluate=lambda model: float(model.weight.detach().square()),
        every="1 epoch",
    )
    assert [step for step, _ in training.advance(Schedule.constant(1e-3, 15), 15)] == [0, 5, 10, 15]
