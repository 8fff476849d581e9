"""The settings of a run of a new task."""

import pytest

from paceline.errors import InputError
from paceline.settings import NewTaskSettings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "greedy"}, 'method must be "universal" or "probe" or "dynamic", got \'greedy\''),
        ({"location": "mean"}, 'location must be "posterior" or "point", got \'mean\''),
        ({"prior": "box"}, 'prior must be "gaussian" or "hull", got \'box\''),
        ({"probe": -1}, "probe must be at least 0, got -1"),
        ({"method": "probe"}, 'method="probe" needs a probe, got probe=0: pass its length in steps'),
        ({"forks": 0}, "forks must be at least 1, got 0"),
        ({"forks": 2, "method": "universal"}, "several forks need method=\"dynamic\", got 2 and 'universal'"),
        ({"alphas": (0.0, 0.5)}, r"alphas must be two quantiles in \(0, 1\), first and last"),
    ],
)
def test_what_is_refused(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        NewTaskSettings(**values)
