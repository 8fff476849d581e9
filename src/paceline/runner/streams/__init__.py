"""Forks side by side on one GPU."""

from paceline.runner.streams.runner import Streams

__all__ = ["Streams"]
