"""Doing it, all forks: runners take tasks and give back reports."""

from paceline.runner.base import Factories, Runner
from paceline.runner.local import Local
from paceline.runner.named import make_runner, with_settings
from paceline.runner.stopwatch import Stopwatch

__all__ = ["Factories", "Local", "Runner", "Stopwatch", "make_runner", "with_settings"]
