import time

import pytest

from paceline.runner import Stopwatch


def test_seconds_add_up_under_a_name_also_if_the_work_fails() -> None:
    watch = Stopwatch("training")
    with watch.on("training") as first:
        time.sleep(0.002)
    with pytest.raises(ValueError, match="bad"), watch.on("training") as second:
        raise ValueError("bad")
    with watch.on("checkpoint"):
        pass
    assert watch.seconds["training"] == pytest.approx(first.seconds + second.seconds)
    assert first.seconds >= 0.002
    assert set(watch.seconds) == {"training", "checkpoint"}
