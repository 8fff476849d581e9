"""Links by name: those of the package, and those that a user has registered.

A journal holds nothing of a link but its name. Nothing is imported because of it: a user registers a link of their own
before they open a study with it.
"""

from typing import TypeVar

import torch

from paceline.errors import InputError
from paceline.model.learning_curves import (
    Exp4,
    Hill3,
    Ilog2,
    Janoschek,
    LogLogLinear,
    LogPower,
    MorganMercerFlodin,
    Pow3,
    Pow4,
    VaporPressure,
    Weibull,
)
from paceline.model.links import Exponential, Hyperbolic, Linear, Link, Power, Relaxing, Signed

MAX_LATENTS = 4  # more would need too many nodes of quadrature

LINKS: dict[str, type[Link]] = {
    link.name: link
    for link in (
        *(Linear, Exponential, Power, Hyperbolic, Signed, Relaxing),
        *(VaporPressure, Pow3, LogLogLinear, Hill3, LogPower, Pow4),
        *(MorganMercerFlodin, Exp4, Janoschek, Weibull, Ilog2),
    )
}
_registered: dict[str, Link] = {}
AnyLink = TypeVar("AnyLink", bound="Link | type[Link]")


def register_link(link: AnyLink, *, name: str = "") -> AnyLink:
    """Make a link of your own known by its name, so that studies can hold it. Also a decorator of its class.

    >>> @register_link
    ... class Logarithmic(Link):
    ...     name = "logarithmic"
    ...
    ...     def curve(self, f, elapsed):
    ...         return torch.log1p(elapsed)
    >>> link_of("logarithmic").name
    'logarithmic'

    Args:
        link: an instance, or a class that needs no arguments.
        name: by default the link's own `name`.

    Returns:
        What was passed.
    """
    made = link() if isinstance(link, type) else link
    if not isinstance(made, Link):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"register_link takes a Link, got {made!r}: derive your class from paceline.model.Link")
    _check_link(made)
    name = name or made.name
    other = _registered.get(name)
    if name in LINKS or (other is not None and _origin(other) != _origin(made)):
        taken = LINKS[name] if name in LINKS else type(other)
        raise InputError(f"the name {name!r} belongs to {taken.__qualname__}: give {_kind(made)} another one")
    _registered[name] = made
    return link


def link_of(link: "str | Link | type[Link]") -> Link:
    """The link itself, or the link with this name: `link_of("exponential")`."""
    if isinstance(link, Link):
        return link
    if isinstance(link, type):
        raise InputError(f"a link is a name or an instance, got the class {link.__name__}: pass {link.__name__}()")
    if isinstance(link, str) and link in LINKS:  # pyright: ignore[reportUnnecessaryIsInstance]
        return LINKS[link]()
    if isinstance(link, str) and link in _registered:  # pyright: ignore[reportUnnecessaryIsInstance]
        return _registered[link]
    raise InputError(
        f"no link is registered as {link!r}: use one of {', '.join([*LINKS, *_registered])}, or register your own "
        "first, with paceline.model.register_link(YourLink)"
    )


def registered_name(link: "str | Link") -> str:
    """The name that a study holds of a link; an error unless the name leads back to that link."""
    if isinstance(link, str):
        link_of(link)
        return link
    for name, known in ((name, link_of(name)) for name in (*LINKS, *_registered)):
        if known is link or _description(known) == _description(link):
            return name
    raise InputError(
        f"the link {link_of(link).name!r} is not registered: a study holds nothing but the name of its link, so call "
        f"paceline.model.register_link({_kind(link)}) first"
    )


def _check_link(link: Link) -> None:
    """Refuse a link that the model cannot use: its curve must start at 0 and be finite, and not negative."""
    if not isinstance(getattr(link, "name", None), str) or not link.name:
        raise InputError(f"{_kind(link)} needs a name, got none: set `name` to a text in its class")
    if link.latents not in range(1, MAX_LATENTS + 1):
        raise InputError(f"{_kind(link)} must have 1 to {MAX_LATENTS} latents, got {link.latents}")
    grid = torch.linspace(-3, 3, 7, dtype=torch.float64)[:, None]
    f, elapsed = grid.expand(link.latents, -1, 1), torch.linspace(0, 3, 13, dtype=torch.float64)
    curve = link.curve_of(f, elapsed).expand(7, 13)
    if not bool(torch.isfinite(curve).all()) or bool((curve < 0).any()) or bool((curve[:, 0] != 0).any()):
        wrong = curve[~torch.isfinite(curve) | (curve < 0)]
        found = f"{float(wrong[0]):g}" if len(wrong) else f"{float(curve[:, 0].abs().max()):g} at elapsed = 0"
        raise InputError(
            f"the curve of {_kind(link)} must be 0 at elapsed = 0, and finite and not negative later, got {found}: "
            "subtract its value at the start; traces that get worse need signed = True, not a negative curve"
        )


def _kind(link: Link) -> str:
    return type(link).__name__


def _description(link: Link) -> tuple[type, str]:
    """Its class and its parameters."""
    return type(link), repr(link.__getstate__())


def _origin(link: Link) -> tuple[str, str]:
    """Where its class was defined: a cell of a notebook that is run again defines the same link again."""
    return type(link).__module__, type(link).__qualname__
