"""The command line: tune, show and replay studies, export their schedules, and plan runs.

Commands import what they need when they run, so that help and `show` do not wait for torch. An error of Paceline is one
line and exit code 2. Ctrl-C is exit code 130, and the study can be continued.
"""

from importlib import import_module

from paceline.cli.application import app

# each module adds its commands, in the order of the help
for _command in ("tune", "tasks", "study", "serve", "report", "plan", "demo"):
    import_module(f"paceline.cli.{_command}_{'commands' if _command == 'study' else 'command'}")

__all__ = ["app"]
