"""`paceline demo`."""

import re
from pathlib import Path

from paceline.study import Study
from tests.cli.command_line import call


def test_the_demo_compares_at_the_same_budget_and_says_what_to_open(folder: Path) -> None:
    done = call("demo", "--steps", "60", "--seed", "1")
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if re.match(r"\S+ +\d\.\d+ ", line)}
    assert set(rows) == {"paceline", "constant", "cosine", "one-cycle"}
    assert int(rows["paceline"][2]) <= 138
    assert all(rows[name][2] == "180" for name in ("constant", "cosine", "one-cycle"))
    assert re.search(r"raw weights: paceline ended \d+ % (above|below) the best fixed schedule", done.stdout)
    assert re.search(r"own time: decide .* s, journal .* s, checkpoint .* s: .* % of its run, \d+ ms a", done.stdout)
    assert (folder / "runs" / "demo" / "tuned_digits.html").exists()
    assert Study.open(folder / "runs" / "demo" / "paceline").settings["seed"] == 1
