"""Text in figures. Plotly reads a few HTML tags and entities in every text, so a name with `<` in it needs escaping.

`label` is the only place that escapes text for figures. Pages pass figures on as JSON and escape nothing again.
"""

from html import escape

from paceline.safe_text import safe_text

MAX_LENGTH = 70


def label(text: str) -> str:
    """Text of a study that plotly shows literally; long text is shortened.

    >>> label("R&D <x>")
    'R&amp;D &lt;x&gt;'
    """
    text = safe_text(text)
    return escape(text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 3]}...", quote=False)


def weights_label(weights: str) -> str:
    """The title of an axis of values, which are of raw or of averaged weights."""
    return label(f"value ({weights} weights)")
