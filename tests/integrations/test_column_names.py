import pytest

from paceline.errors import InputError
from paceline.integrations.column_names import RATE, STEP, VALUE, ColumnKind, choose_column
from paceline.integrations.grouped_warnings import GroupedWarnings


def choose(names: list[str], kind: ColumnKind, name: str | None = None) -> str:
    return choose_column(names, kind, name, "log.csv", GroupedWarnings())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (STEP, "Global_Step"),
        (STEP, "trainer/global_step"),
        (STEP, "_step"),
        (STEP, "iters"),
        (RATE, "lr"),
        (RATE, "LearningRate"),
        (RATE, "train/learning_rate"),
        (RATE, "lr-AdamW/pg1"),
        (VALUE, "value"),
        (VALUE, "val/loss"),
        (VALUE, "loss_train"),
        (VALUE, "nll"),
    ],
)
def test_usual_names_are_recognised(kind: ColumnKind, name: str) -> None:
    assert choose(["color", name, "epoch"], kind) == name


@pytest.mark.parametrize(
    ("kind", "better", "worse"),
    [
        (STEP, "step", "train step"),
        (RATE, "lr", "train/lr"),
        (RATE, "train/lr", "lr-AdamW"),
        (VALUE, "value", "val_loss"),
        (VALUE, "val_loss", "loss"),
        (VALUE, "loss", "train_loss"),
        (VALUE, "train_loss", "smooth_aux_loss"),
    ],
)
def test_of_several_the_best_is_chosen_whatever_their_order(kind: ColumnKind, better: str, worse: str) -> None:
    assert choose([better, worse], kind) == better
    assert choose([worse, better], kind) == better


def choice(names: list[str], kind: ColumnKind) -> None:
    with GroupedWarnings() as grouped:
        choose_column(names, kind, None, "log.csv", grouped)


def test_a_choice_is_a_warning_unless_it_is_of_the_step() -> None:
    message = "log.csv: the loss is read from 'val_loss', not from 'loss': choose with value="
    with pytest.warns(UserWarning, match=message):
        choice(["loss", "val_loss"], VALUE)
    choice(["step", "iteration"], STEP)  # a warning would be an error here


def test_a_name_that_the_user_gave_must_be_there() -> None:
    assert choose(["acc", "loss"], VALUE, "acc") == "acc"
    with pytest.raises(InputError, match=r"log.csv has no column 'err': it has 'acc', 'loss'; value= .* takes one"):
        choose(["acc", "loss"], VALUE, "err")


def test_without_a_name_that_fits_it_says_which_are_usual() -> None:
    with pytest.raises(
        InputError, match=r"no column for the loss .like loss, value.*, it has 'acc': name the right one"
    ):
        choose(["acc"], VALUE)
    with pytest.raises(InputError, match=r"it has no columns at all.*If it was constant and not logged, pass the rate"):
        choose([], RATE)
