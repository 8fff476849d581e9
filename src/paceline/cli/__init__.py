"""The command line: tune a training or a family of tasks, look at a study, take its schedules elsewhere, plan a run.

Commands import what they need when they run, so that help and `show` do not wait for torch. What paceline refuses is
one readable message and exit code 2; Ctrl-C is exit code 130 and leaves a study that can be continued.
"""

from paceline.cli import tune, tasks, studies, serve, report, plan, demo  # noqa: I001  each adds its commands, in order
from paceline.cli.app import app

__all__ = ["app", "demo", "plan", "report", "serve", "studies", "tasks", "tune"]
