"""Batches drawn from tables: every row once an epoch, and images moved as the table says."""

import pytest
import torch

from paceline import Schedule
from paceline.errors import InputError
from paceline.training import DeviceBatches
from tests.training.example_trainings import device_digits


def test_an_epoch_sees_every_row_once_in_a_new_order() -> None:
    values = torch.arange(12.0)
    batches = DeviceBatches(values, values.long(), size=4)
    first, second = ([x for batch, _ in batches for x in batch.tolist()] for _ in range(2))
    assert sorted(first) == sorted(second) == values.tolist()
    assert first != second
    assert all(torch.equal(x.long(), y) for x, y in batches)
    assert [x.tolist() for (x,) in DeviceBatches(values, size=5, shuffle=False)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_images_are_shifted_and_mirrored_as_the_table_says() -> None:
    images = torch.randn(7, 3, 5, 6)
    batches = DeviceBatches(images, torch.arange(7), size=3, crop=2, flip=True)
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2))
    table = batches.draw_table()
    assert table.shape == (2, 4, 3)
    for row in table:
        moved, labels = batches.gather(row)
        for k, (index, top, left, mirrored) in enumerate(row.T.tolist()):
            expected = padded[index, :, top : top + 5, left : left + 6]
            assert torch.equal(moved[k], expected.flip(-1) if mirrored else expected)
            assert int(labels[k]) == index
    whole = torch.cat([DeviceBatches(images, size=7, crop=2, flip=True).draw_table()[0] for _ in range(200)], dim=1)
    assert set(whole[1].tolist()) == set(whole[2].tolist()) == set(range(5))
    assert set(whole[3].tolist()) == {0, 1}


def test_a_transform_comes_last() -> None:
    batches = DeviceBatches(torch.ones(4, 1), size=2, transform=lambda batch: batch[0] * 3)
    assert [batch.sum().item() for batch in batches] == [6, 6]


@pytest.mark.parametrize("pause", [5, 21, 22, 30])
def test_a_run_is_continued_in_the_middle_of_an_epoch(pause: int) -> None:
    schedule = Schedule.of("linear", 1e-2, 40)  # an epoch has 21 batches
    whole, first, second = (device_digits(evaluate="none") for _ in range(3))
    expected = dict(whole.advance(schedule, 40))
    list(first.advance(schedule, pause))
    second.load_state_dict(first.state_dict())
    assert dict(second.advance(schedule, 40))[40] == expected[40]


def test_bad_data_says_what_to_do() -> None:
    for wrong, message in [
        (lambda: DeviceBatches(size=1), "tensors must have the same number of rows on the same device, got none"),
        (lambda: DeviceBatches(torch.ones(3), torch.ones(4), size=1), "got 3 on cpu, 4 on cpu"),
        (lambda: DeviceBatches(torch.ones(3), size=4), r"size must lie in 1..3, the number of rows, got 4"),
        (lambda: DeviceBatches(torch.ones(3, 2), size=1, crop=1), r"crop and flip need images .* got \(3, 2\)"),
    ]:
        with pytest.raises(InputError, match=message):
            wrong()
