"""Text that may come from a stranger's study, made safe where it leaves for a terminal, a page or a log.

A journal, the name of a study and the name of a file may hold escape sequences, which a terminal obeys, or characters
that turn the direction of the text around them. `safe_text` is the only function that makes them visible instead.
"""


def safe_text(text: str, *, keep: str = "") -> str:
    r"""The text with every character that does not print written as its escape.

    Args:
        text: any text.
        keep: characters to leave as they are, such as a newline.

    >>> print(safe_text("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
