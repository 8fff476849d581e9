"""Ray Tune's own tuner with our scheduler, on a real cluster on this machine: what was decided survives a restore."""

import gc
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch

pytest.importorskip("ray.tune")
import ray
from ray import tune

from paceline.errors import InputError
from paceline.integrations.ray_tune import PacelineScheduler, rate
from paceline.integrations.ray_tune.trial_rates import staircase
from paceline.strategy import Dynamic, ForkPlan, Rung
from paceline.study import Decided, Event, Failure, Finished, Interval, Report, read_journal
from paceline.traces import Schedule
from tests.integrations.ray_tune.example_trainables import Descent

# ray's own: files and processes that it leaves to the garbage collector, and notices about itself
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:ray"),
]
STEPS = 9
SMALL = replace(  # two trials and a rung at iteration 3: starting a trial again takes Ray seconds
    Dynamic.horizon(forks=2), plan=ForkPlan(2, (Rung(1 / 3, 2, 1),), protect_leader=True), weights="raw"
)
STAIRS = replace(SMALL, base=staircase(STEPS, 2))  # at iterations 3 and 6


def forgetful(config: dict[str, Any]) -> None:
    """A function that makes ray's mistake itself: it loads the optimiser's state, and leaves the rate as it was."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=config["lr"])
    first = 0
    if (checkpoint := tune.get_checkpoint()) is not None:
        first, state = torch.load(Path(checkpoint.path) / "state.pt")
        optimizer.load_state_dict(state)
    for step in range(first, STEPS):
        said = {"loss": 1.0 / (1 + step), "lr": optimizer.param_groups[0]["lr"]}
        with TemporaryDirectory() as folder:
            torch.save((step + 1, optimizer.state_dict()), Path(folder) / "state.pt")
            tune.report(said, checkpoint=tune.Checkpoint(folder))


class Fragile(Descent):
    """Raises from iteration `first` on; with a file to mark it, once in all."""

    mark: "Path | None" = None
    first = 5
    above = 0.0  # rates at which it raises

    def step(self) -> dict[str, float]:
        said = super().step()
        if self.iteration + 1 >= self.first and said["lr"] > self.above:
            if self.mark is None:
                raise ValueError("a bad batch")
            if not self.mark.exists():
                self.mark.touch()
                raise ValueError("a bad batch, once")
        return said


class PowerCut(tune.Callback):
    """Takes the experiment down once, in the middle of an interval."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any, **info: Any) -> None:
        if result["training_iteration"] == 5 and not self.mark.exists():
            self.mark.touch()
            raise RuntimeError("the power went off")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        try:
            yield
        finally:
            ray.shutdown()
            gc.collect()  # ray's open files, here where their warnings are ignored, not in whichever test comes next


def experiment(folder: Path, trainable: Any, scheduler: PacelineScheduler, **more: Any) -> tune.Tuner:
    return tune.Tuner(
        trainable,
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=2,
            scheduler=scheduler,
            reuse_actors=isinstance(trainable, type) and issubclass(trainable, Descent),
        ),
        run_config=tune.RunConfig(
            name="pace",
            storage_path=str(folder),
            verbose=0,
            checkpoint_config=tune.CheckpointConfig(num_to_keep=1),  # a parent's goes before its clone begins
            **more,
        ),
    )


def scheduler(**settings: Any) -> PacelineScheduler:
    return PacelineScheduler(lr=(1e-2, 3.0), steps=STEPS, **{"strategy": SMALL, **settings})


@pytest.fixture(scope="module")
def undisturbed(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return experiment(tmp_path_factory.mktemp("ray"), Descent, scheduler()).fit()


def journal(results: Any) -> list[Event]:
    return read_journal(Path(results.experiment_path) / "paceline" / "journal.jsonl")


def test_trials_are_forks_and_each_trains_at_the_rate_that_was_decided(undisturbed: Any) -> None:
    """The trainable's checkpoints bring back the parent's rate, as in ray issues 62173 and 36660."""
    assert not undisturbed.errors
    events = journal(undisturbed)
    assert sum(isinstance(event, Interval) and event.parent is not None for event in events) == 1
    end = events[-1]
    assert isinstance(end, Finished)
    best = undisturbed.get_best_result()
    assert best.metrics["training_iteration"] == STEPS
    assert best.checkpoint is not None
    assert end.value == pytest.approx(best.metrics["loss"])
    trained = {(row["training_iteration"], round(row["loss"], 9)): row["lr"] for row in _rows(undisturbed)}
    schedules: dict[int, Schedule] = {}
    seen = set[float]()
    for event in events:
        if isinstance(event, Interval):
            schedules[event.fork] = event.schedule
        if isinstance(event, Report) and event.failure is None:
            for step, value in zip(event.steps, event.values["raw"], strict=True):
                rate = schedules[event.fork](step - 1)
                seen.add(round(rate, 9))
                assert trained[step, round(value, 9)] == pytest.approx(rate, rel=1e-3)
    assert len(seen) > 12, "rates of three forks that decay"
    folder = Path(undisturbed.experiment_path) / "paceline" / "checkpoints"
    assert {path.name.split("-")[1] for path in folder.iterdir()} == {"3"}, "states that nothing needs are gone"


def test_the_schedule_is_one_entry_of_a_configuration_that_can_be_read(undisturbed: Any) -> None:
    """Ray's display has a row for every entry, and one for every entry of a dict."""
    config, events = undisturbed.get_best_result().config, journal(undisturbed)
    assert set(config) == {"lr", "paceline_schedule"}
    assert not any(isinstance(value, dict) for value in config.values())
    end = events[-1]
    assert isinstance(end, Finished)
    won = [event.schedule for event in events if isinstance(event, Interval) and event.fork == end.fork][-1]
    assert [rate(config, step) for step in range(STEPS)] == [won(step) for step in range(STEPS)]


def _rows(results: Any) -> list[dict[str, float]]:
    return [row for result in results for row in result.metrics_dataframe.to_dict("records")]


def test_an_experiment_that_was_cut_off_goes_on_with_the_same_decisions(undisturbed: Any, tmp_path: Path) -> None:
    stop = {"training_iteration": STEPS}  # as people who come from PBT have it
    first = experiment(tmp_path, Descent, scheduler(), callbacks=[PowerCut(tmp_path / "dark")], stop=stop)
    with pytest.raises(Exception, match="the power went off"):
        first.fit()
    before = read_journal(tmp_path / "pace" / "paceline" / "journal.jsonl")
    assert 1 <= sum(isinstance(event, Decided) for event in before) < 3
    results = tune.Tuner.restore(str(tmp_path / "pace"), trainable=Descent).fit()
    assert not results.errors
    assert _decisions(journal(results)) == _decisions(journal(undisturbed))


def _decisions(events: list[Event]) -> list[Any]:
    """What was decided and observed, in an order that does not depend on which trial was the quicker one."""
    kept = [
        event
        for event in events
        if isinstance(event, Interval | Finished) or (isinstance(event, Report) and not event.failure)
    ]
    return sorted(map(repr, kept))


def test_a_trial_that_ray_tries_again_begins_its_interval_again(undisturbed: Any, tmp_path: Path) -> None:
    """With max_failures: what was decided is as if nothing had happened."""
    once = type("Once", (Fragile,), {"mark": tmp_path / "raised"})
    again = tune.FailureConfig(max_failures=1)
    results = experiment(tmp_path, once, scheduler(), failure_config=again).fit()
    assert (tmp_path / "raised").exists()
    assert not any(isinstance(event, Report) and event.failure for event in journal(results))
    assert _decisions(journal(results)) == _decisions(journal(undisturbed))


def test_a_trial_that_ends_with_an_error_is_a_fork_that_failed(cluster: None, tmp_path: Path) -> None:
    """Without max_failures: the other goes on, and nothing is left to run its challenger."""
    high = type("High", (Fragile,), {"first": 2, "above": 0.5})
    results = experiment(tmp_path, high, scheduler()).fit()
    assert len(results.errors) == 1
    events = journal(results)
    failed = [event.failure for event in events if isinstance(event, Report) and event.failure]
    assert failed[0] == Failure("raised", "its trial ended with an error: ValueError: a bad batch")
    assert set(failed[1:]) == {Failure("raised", "no trial is left to run it")}
    end = events[-1]
    assert isinstance(end, Finished)
    (through,) = [result for result in results if result.error is None]  # Ray's best may be one that raised
    assert end.value == pytest.approx(through.metrics["loss"])


def test_an_experiment_whose_trials_all_raise_ends_and_says_why(cluster: None, tmp_path: Path) -> None:
    broken = type("Broken", (Fragile,), {"first": 1})
    results = experiment(tmp_path, broken, scheduler()).fit()
    assert len(results.errors) == 2
    events = journal(results)
    end = events[-1]
    assert isinstance(end, Finished)
    assert end.fork is None
    decided = [event for event in events if isinstance(event, Decided)]
    reason = decided[-1].reasons[0]
    assert (reason.kind, reason["cause"]) == ("all failed", "errors")


@pytest.mark.slow
def test_a_function_that_trains_at_an_old_rate_gets_an_error(cluster: None, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="brought back an old rate"):
        experiment(tmp_path, forgetful, scheduler(strategy=STAIRS)).fit()


@pytest.mark.slow
def test_a_trial_is_started_again_at_each_stair(cluster: None, tmp_path: Path) -> None:
    results = experiment(tmp_path, Descent, scheduler(strategy=STAIRS, stairs=2)).fit()
    assert not results.errors
    assert isinstance(journal(results)[-1], Finished)
    last = [row["lr"] for row in results.get_best_result().metrics_dataframe.to_dict("records")][-6:]
    assert last[0] == pytest.approx(last[2], rel=1e-3)
    assert last[5] == pytest.approx(last[0] / 3, rel=1e-3)


def test_the_number_of_trials_must_suit_the_cost(cluster: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected num_samples=8"):
        experiment(tmp_path, forgetful, PacelineScheduler(lr=(1e-3, 1.0), steps=40, cost=2.3)).fit()
