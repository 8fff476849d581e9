import pytest

from paceline.errors import InputError, JournalError
from paceline.study import reading


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("y"), OverflowError(), RecursionError(), ValueError("z")])
def test_a_contradiction_is_an_error_of_the_journal(error: Exception) -> None:
    with (
        pytest.raises(JournalError, match="runs/a cannot be shown, because its events contradict") as caught,
        reading("runs/a"),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_our_own_errors_and_interrupts_pass() -> None:
    with pytest.raises(InputError, match="as it is"), reading():
        raise InputError("as it is")
    with pytest.raises(KeyboardInterrupt), reading():
        raise KeyboardInterrupt
