"""Batches come in lists of the size of one update, epoch after epoch."""

from torch.utils.data import DataLoader

from paceline.training import BatchGroups


def test_every_batch_comes_once_and_the_last_group_may_be_shorter() -> None:
    groups = BatchGroups(range(7), 3)
    assert [list(groups), list(groups)] == [[[0, 1, 2], [3, 4, 5], [6]]] * 2


def test_no_empty_group_comes_at_the_end() -> None:
    assert list(BatchGroups("abcd", 2)) == [["a", "b"], ["c", "d"]]
    assert list(BatchGroups([], 2)) == []


def test_an_epoch_of_groups_is_entered_in_the_middle() -> None:
    groups = BatchGroups(DataLoader(list(range(7)), batch_size=None), 2)
    assert list(groups.epoch(2) or ()) == [[4, 5], [6]]
    assert BatchGroups(range(7), 2).epoch(2) is None
