"""A study that is killed goes on as if nothing had happened: the short version of benchmarks/kill.py."""

import subprocess
import sys
from pathlib import Path


def test_killed_three_times_a_study_makes_the_same_decisions_and_the_same_weights() -> None:
    command = [sys.executable, "-m", "benchmarks.kill", "--kills", "3", "--seed", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True)
    assert "RESULT kill_same_decisions 3\n" in done.stdout, done.stdout + done.stderr
    assert "RESULT kill_equal_weights 3\n" in done.stdout
