"""A warning names the line of the caller, whatever lies between."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from paceline.tuner import user_warning


def test_the_line_of_the_user_is_named() -> None:
    assert user_warning.__file__ is not None
    loader = SourceFileLoader("paceline.plain", user_warning.__file__)  # type checks of the tests would lie between
    spec = spec_from_file_location("paceline.plain", user_warning.__file__, loader=loader)
    assert spec is not None
    plain = module_from_spec(spec)
    loader.exec_module(plain)
    names = {"__name__": "paceline.somewhere", "warn_user": plain.warn_user}
    exec("def inner():\n    warn_user('look')\n\ndef outer():\n    inner()", names)
    with pytest.warns(UserWarning, match="look") as direct:
        plain.warn_user("look")
    with pytest.warns(UserWarning, match="look") as deep:
        names["outer"]()
    assert direct[0].filename == deep[0].filename == __file__
