"""The law: what a learning-rate schedule does to a loss, as a mean function with a state (docs/design.md)."""

from paceline.model.law.model import LawModel

__all__ = ["LawModel"]
