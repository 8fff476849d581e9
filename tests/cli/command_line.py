"""The command line as tests call it: in this process, or in a shell of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from paceline.cli import app
from paceline.problems import Quadratic, QuadraticTraining

BOUNDS = ["--lr", "0.01", "1.5"]
SMALL = ["--steps", "200", *BOUNDS, "--cost", "1.5", "--study", "study"]
SOURCE = str(Path(__file__).parents[2] / "src")
INTERRUPTED = """
import os, signal
from paceline.problems import Quadratic, QuadraticTraining

class Interrupted(QuadraticTraining):
    def advance(self, schedule, stop):
        for step, value in super().advance(schedule, stop):
            if step >= int(os.environ.get("AT", 10**9)):
                os.kill(os.getpid(), signal.SIGINT)
            yield step, value

def make():
    return Interrupted(Quadratic(dims=20), seed=3)
"""


def quadratic() -> QuadraticTraining:
    return QuadraticTraining(Quadratic(dims=20), seed=3)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def tuned(*more: str) -> Result:
    return call("tune", "tests.cli.command_line:quadratic", *SMALL, *more)


def shell(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "paceline", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    )


def refused(done: Result, message: str) -> None:
    assert done.exit_code == 2, done.output
    assert done.stdout == "" or "steps in all" in done.stdout
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert re.search(message, last), last
    assert "Traceback" not in done.output
