"""Ray Tune's own tuner with our scheduler, on a real cluster on this machine: what decides survives a restore."""

import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ray.tune")
import ray
from ray import tune

from paceline.errors import InputError
from paceline.integrations.ray_tune import PacelineScheduler, rate, set_rate
from paceline.study import Cloned, Finished, Proposed, read_journal

# ray's own: files and processes that it leaves to the garbage collector, and notices about itself
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:ray"),
]
ROOT = Path(__file__).parents[2]
STEPS = 20


class Descent(tune.Trainable):
    """Steepest descent on a quadratic. The checkpoint holds the optimiser's state, and with it the rate: ray's bug."""

    def setup(self, config: dict[str, Any]) -> None:
        torch.set_num_threads(1)
        self.weights = torch.nn.Parameter(torch.ones(4))
        self.optimizer = torch.optim.SGD([self.weights], lr=config["lr"])
        self.pause = float(config.get("pause", 0.0))

    def step(self) -> dict[str, float]:
        time.sleep(self.pause)
        before = self.weights.detach().clone()
        loss = (self.weights.square() * torch.tensor([1.0, 0.5, 0.1, 0.02])).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        assert self.weights.grad is not None
        used = float((before - self.weights.detach())[0] / self.weights.grad[0])  # the rate that moved the weights
        return {"loss": float(loss.detach()), "lr": used}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        torch.save([self.weights.detach(), self.optimizer.state_dict()], Path(checkpoint_dir) / "state.pt")

    def load_checkpoint(self, checkpoint: str) -> None:
        weights, state = torch.load(Path(checkpoint) / "state.pt")
        self.weights.data.copy_(weights)
        self.optimizer.load_state_dict(state)


def smooth(config: dict[str, Any]) -> None:
    """A function trainable that follows the schedule at every iteration, in a name of its own."""
    weight, first = 1.0, 0
    if (checkpoint := tune.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            weight, first = torch.load(Path(folder) / "state.pt")
    for step in range(first, STEPS):
        weight -= rate(config, step) * weight
        Path("state").mkdir(exist_ok=True)
        torch.save((weight, step + 1), "state/state.pt")
        tune.report({"loss": weight**2 + 1.0}, checkpoint=tune.Checkpoint("state"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        try:
            yield
        finally:
            ray.shutdown()


def experiment(folder: Path, trainable: Any, scheduler: PacelineScheduler, trials: int, **config: Any) -> tune.Tuner:
    return tune.Tuner(
        trainable,
        param_space=config,
        tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=trials, scheduler=scheduler),
        run_config=tune.RunConfig(
            name="pace", storage_path=str(folder), verbose=0, checkpoint_config=tune.CheckpointConfig(num_to_keep=1)
        ),
    )


def test_trials_are_forks_and_each_trains_at_the_rate_that_was_decided(cluster: None, tmp_path: Path) -> None:
    """The trainable's checkpoints bring back the parent's rate; the scheduler would stop if one had trained at it."""
    tuner = experiment(tmp_path, Descent, PacelineScheduler(lr=(1e-3, 10.0), steps=STEPS, stairs=3), trials=4)
    results = tuner.fit()
    assert not results.errors
    folder = Path(results.experiment_path) / "paceline"
    events = read_journal(folder / "journal.jsonl")
    assert any(isinstance(event, Cloned) for event in events)
    assert isinstance(events[-1], Finished)
    best = results.get_best_result()
    assert best.metrics is not None
    assert best.metrics["training_iteration"] == STEPS
    assert events[-1].value == pytest.approx(best.metrics["loss"])
    schedule = next(e.schedule for e in reversed(events) if isinstance(e, Proposed) and e.fork == events[-1].fork)
    frame = best.metrics_dataframe
    assert frame is not None
    last = frame[frame["training_iteration"] > 7]
    assert last["lr"].tolist() == pytest.approx([schedule(t - 1) for t in last["training_iteration"]], rel=1e-3)
    assert len(set(last["lr"].round(6))) >= 3, "the stairs were not gone down"
    assert best.checkpoint is not None
    assert not list((folder / "checkpoints").glob("*-1")), "states that nothing begins from are not kept"


def test_a_function_follows_a_smooth_schedule_at_less_cost(cluster: None, tmp_path: Path) -> None:
    scheduler = PacelineScheduler(lr=(1e-3, 1.0), steps=40, cost=2.3, stairs=0)
    with pytest.raises(InputError, match="expected num_samples=8"):
        experiment(tmp_path, smooth, scheduler, trials=4).fit()


def test_a_function_that_loads_an_old_rate_is_told(cluster: None, tmp_path: Path) -> None:
    def forgetful(config: dict[str, Any]) -> None:
        weight = torch.nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([weight], lr=config["lr"])
        first = 0
        if (checkpoint := tune.get_checkpoint()) is not None:
            first, state = torch.load(Path(checkpoint.path) / "state.pt")
            optimizer.load_state_dict(state)
            if config["mended"]:
                set_rate(optimizer, config["lr"])
        for step in range(first, STEPS):
            Path("state").mkdir(exist_ok=True)
            torch.save((step + 1, optimizer.state_dict()), "state/state.pt")
            said = {"loss": 1.0 / (1 + step), "lr": optimizer.param_groups[0]["lr"]}
            tune.report(said, checkpoint=tune.Checkpoint("state"))

    scheduler = PacelineScheduler(lr=(1e-3, 1.0), steps=STEPS, stairs=2)
    with pytest.raises(Exception, match="brought back an old rate"):
        experiment(tmp_path / "a", forgetful, scheduler, trials=2, mended=False).fit()
    results = experiment(tmp_path / "b", forgetful, scheduler, trials=2, mended=True).fit()
    assert isinstance(read_journal(Path(results.experiment_path) / "paceline" / "journal.jsonl")[-1], Finished)
