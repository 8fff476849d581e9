"""The one loop, by hand with ask and tell (`Tuner`) or driven by a runner (`tune`)."""

from paceline.tuner.drive import tune
from paceline.tuner.loop import Tuner
from paceline.tuner.result import Result

__all__ = ["Result", "Tuner", "tune"]
