"""Who may look: hosts and tokens."""

import pytest

from paceline.errors import InputError
from paceline.views.web.security import is_loopback, names_of_this_machine, token_for

TOKEN = "a-token-of-some-length"


def test_tokens_are_made_where_others_could_look() -> None:
    assert token_for("127.0.0.1", None) is None
    assert token_for("::1", None) is None
    assert token_for("127.0.0.1", TOKEN) == TOKEN
    made = token_for("0.0.0.0", None)
    assert made is not None
    assert len(made) >= 32
    assert made != token_for("0.0.0.0", None)
    with pytest.raises(InputError, match="at least 16 characters, got 3"):
        token_for("0.0.0.0", "abc")
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "192.168.1.5", "example.org", ""))


def test_this_machine_has_the_name_that_is_served_too() -> None:
    assert names_of_this_machine("127.0.0.1") == ["localhost", "127.0.0.1", "[::1]"]
    assert names_of_this_machine("127.0.0.2")[-1] == "127.0.0.2"
    assert names_of_this_machine("::1") == ["localhost", "127.0.0.1", "[::1]"]
