"""The studies of the CIFAR-10 experiment."""

import pytest

from experiments._cifar_studies import FIXED, METHODS, Unit, all_units


def test_every_method_has_a_strategy_and_a_place() -> None:
    assert all(method.make().to_json() for method in METHODS.values())
    assert {unit.method for unit in all_units()} == set(METHODS)
    assert len({unit.name for unit in all_units()}) == len(all_units())


def test_29_fixed_schedules_are_compared_with() -> None:
    assert sum(method.make().runs for name, method in FIXED.items() if name != "best") == 29


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("paper, d = 10", "resnet20/paper-d10-0"),
        ("horizon 2.3, validation error, one-cycle", "resnet20/horizon-2.3-validation-error-one-cycle-0"),
    ],
)
def test_names_of_folders_have_no_spaces(method: str, name: str) -> None:
    assert Unit(20, method, 0).name == name
