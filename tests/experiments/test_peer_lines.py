"""Lines of a user's code."""

from experiments._peer_lines import CODE, _lines, lines_of


def test_lines_without_docstrings_comments_and_blanks() -> None:
    source = 'def f(x):\n    """Say.\n\n    More.\n    """\n    # why\n    y = x\n\n    return y  # so\n'
    assert _lines(source, "f") == 3
    assert all(lines_of(method) > 5 for method in CODE)
