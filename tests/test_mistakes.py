"""Arguments of another type than asked for, as people pass them who have no type checker: each is told what to do."""

import subprocess
import sys
from pathlib import Path

MISTAKES = {
    "paceline.tune(training(), steps=100, lr=(1e-4, 1e-1))": "got a TorchTraining: pass the function itself",
    "paceline.Tuner(steps=100, lr=(1e-4, 1e-1), cost='2.3')": "cost must be a number of runs, got '2.3': pass 2.3",
    "paceline.Tuner(steps=1e3, lr=(1e-4, 1e-1))": "steps must be an int, got 1000.0: pass a whole number",
    "paceline.Tuner(steps=100, lr=1e-3)": "bounds must be a pair (low, high), got 0.001",
    "paceline.Tuner(steps=100, lr=(1e-4, 1e-1), strategy='greedy')": "got 'greedy': pass Dynamic.greedy()",
    "training(torch.optim.SGD)": "with param_groups, got the class SGD: pass torch.optim.AdamW(model.parameters())",
    "paceline.Tuner(steps=100, lr=(1e-4, 1e-1), on_event='tensorboard')": "got 'tensorboard': pass events.tensorboard(",
    "paceline.PaceLR(torch.nn.Linear(1, 1), lr=(1e-4, 1e-1), steps=100)": "with param_groups, got a Linear",
    "training(object())": "with param_groups, got a object",
}
CODE = """
import paceline, torch

def training(optimizer=None):
    model = torch.nn.Linear(1, 1)
    return paceline.TorchTraining(
        model, optimizer or torch.optim.SGD(model.parameters()), batches=[torch.ones(1)], loss=lambda m, b: m(b).mean()
    )

for mistake in {mistakes!r}:
    try:
        eval(mistake)
    except paceline.errors.InputError as error:
        print(error)
"""


def test_mistakes_are_told_in_words() -> None:
    source = str(Path(__file__).parents[1] / "src")
    code = CODE.format(mistakes=list(MISTAKES))
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert len(said) == len(MISTAKES), done.stdout + done.stderr
    for line, expected in zip(said, MISTAKES.values(), strict=True):
        assert expected in line
