"""The objective: whether to minimise a value, and on which scale to model it.

Inside the model bigger is always better. Users see their own units. Only this module converts between the two.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from paceline.errors import InputError

Mode = Literal["min", "max"]
Transform = Literal["identity", "log"]
Weights = Literal["raw", "averaged"]


@dataclass(frozen=True, slots=True)
class Objective:
    """What recorded values mean.

    Args:
        mode: "min" for a loss, "max" for an accuracy or an evidence lower bound.
        transform: "identity", or "log" to model the logarithm of a positive value.
        weights: which weights were evaluated: "raw" or "averaged".

    >>> Objective(transform="log").to_model(np.array([1.0]))
    array([-0.])
    """

    mode: Mode = "min"
    transform: Transform = "identity"
    weights: Weights = "raw"

    def __post_init__(self) -> None:
        for name, allowed in (
            ("mode", ("min", "max")),
            ("transform", ("identity", "log")),
            ("weights", ("raw", "averaged")),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"Objective.{name} must be one of {allowed}, got {value!r}: pick one of these")

    @property
    def sign(self) -> float:
        """+1 if bigger values are better, -1 if smaller ones are."""
        return 1.0 if self.mode == "max" else -1.0

    def to_model(self, values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """User's units -> model's units, in which bigger is better."""
        if self.transform == "identity":
            return self.sign * values
        if np.any(values <= 0):
            raise InputError(
                f'transform="log" needs positive values, got a smallest value of {float(values.min()):.6g}: '
                'use Objective(transform="identity") or shift the values'
            )
        return self.sign * np.log(values)

    def to_user(self, values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Model's units -> user's units: the inverse of `to_model`."""
        signed = self.sign * values
        return np.exp(signed) if self.transform == "log" else signed
