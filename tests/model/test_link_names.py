"""Links by name: built in, registered by a user, and missing."""

from typing import ClassVar

import pytest
import torch
from torch import Tensor

from paceline import InputError
from paceline.model import LINKS, Exponential, Linear, Link, Signed, link_of, register_link, registered_name
from tests.model.example_links import Creeping, unregister


@pytest.fixture(autouse=True)
def _clean():
    yield
    unregister("creeping", "steep", "plain", "warped")


def test_links_go_by_name() -> None:
    assert type(link_of("signed")) is Signed
    link = Linear()
    assert link_of(link) is link
    assert list(LINKS) == [link_of(name).name for name in LINKS]


def test_a_missing_link_is_named_with_what_to_do() -> None:
    with pytest.raises(InputError, match=r"no link is registered as 'quadratic': .*register_link\(YourLink\)"):
        link_of("quadratic")
    with pytest.raises(InputError, match=r"got the class Linear: pass Linear\(\)"):
        link_of(Linear)


def test_a_registered_link_is_found_by_its_name_and_by_itself() -> None:
    assert register_link(Creeping) is Creeping
    assert type(link_of("creeping")) is Creeping
    assert registered_name("creeping") == registered_name(Creeping()) == "creeping"
    assert registered_name(Exponential()) == "exponential"


def test_a_link_with_parameters_is_found_if_they_are_the_same() -> None:
    register_link(Creeping(base=3.0), name="steep")
    assert registered_name(Creeping(base=3.0)) == "steep"
    with pytest.raises(InputError, match=r"'creeping' is not registered.*register_link\(Creeping\) first"):
        registered_name(Creeping())


def test_a_name_belongs_to_one_class_and_a_class_may_be_registered_again() -> None:
    register_link(Creeping)
    register_link(Creeping(base=4.0))
    assert vars(link_of("creeping")) == {"base": 4.0}

    class Other(Creeping):
        pass

    with pytest.raises(InputError, match="the name 'creeping' belongs to Creeping: give Other another one"):
        register_link(Other)
    with pytest.raises(InputError, match="the name 'linear' belongs to Linear: give Creeping another one"):
        register_link(Creeping, name="linear")


def test_links_that_a_model_cannot_use_are_refused() -> None:
    class Plain(Link):
        name: ClassVar[str] = "plain"

        def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
            return 1 + elapsed

    class Falling(Plain):
        def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
            return -elapsed

    class Nameless(Plain):
        name: ClassVar[str] = ""

    class Many(Plain):
        latents: ClassVar[int] = 5

    class Unsound(Plain):
        def curve(self, f: Tensor, elapsed: Tensor) -> Tensor:
            return torch.log(f) * elapsed

    for link, message in (
        (Plain, "the curve of Plain must be 0 at elapsed = 0, .* got 1 at elapsed = 0"),
        (Falling, "the curve of Falling must be 0 at elapsed = 0, and finite and not negative later, got -0.25"),
        (Unsound, "the curve of Unsound must be .* got nan"),
        (Nameless, "Nameless needs a name, got none"),
        (Many, "Many must have 1 to 4 latents, got 5"),
    ):
        with pytest.raises(InputError, match=message):
            register_link(link)
