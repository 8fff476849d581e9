"""Doing it, all forks: runners take tasks and give back reports."""

from paceline.runner.base import Report, Runner, Task
from paceline.runner.local import Local

__all__ = ["Local", "Report", "Runner", "Task"]
