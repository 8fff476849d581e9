"""A Ray Tune scheduler that drives our tuner: trials are forks, rungs are where they pause.

Everything that decides what comes next lies in a study inside the experiment's folder, and is on disk before a trial is
told. Ray itself saves no scheduler: `Tuner.restore` hands over one as it was before the start, and this one then goes
on from the study, with every interrupted fork back at the beginning of its interval.
"""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow.fs import LocalFileSystem  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]
from ray.train._internal.session import _TrainingResult  # pyright: ignore[reportPrivateUsage]
from ray.tune import Checkpoint
from ray.tune.experiment import Trial
from ray.tune.registry import register_trainable  # pyright: ignore[reportUnknownVariableType]
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import BasicVariantGenerator
from ray.tune.trainable import FunctionTrainable

from paceline.errors import InputError, TrainingError
from paceline.integrations.ray_tune.forks import Running, strategy_for
from paceline.integrations.ray_tune.rates import SCHEDULE, rated
from paceline.integrations.ray_tune.record import Record
from paceline.strategy import Dynamic, Strategy
from paceline.study import Interval
from paceline.traces import LearningRateRange
from paceline.tuner import Tuner

ITERATION = "training_iteration"
STAIRS = 10  # of a function


class PacelineScheduler(TrialScheduler):
    """Tunes the learning rate while trials train, in place of `PopulationBasedTraining` or `PB2`.

    Each trial is a fork. At rungs the best go on, others take over the checkpoint of the best and go on from there at
    another rate. The rate holds, then decays to zero. In a trainable class it is written into its torch optimisers
    before every iteration; a function is given it as `config["lr"]`, in stairs: at each it is checkpointed, and started
    again. A study is kept in the folder `paceline` of the experiment, for `paceline show`, `export` and the rest.

    Args:
        lr: lower and upper bound of the rate.
        steps: length of a run, in training iterations; trials need no other criterion to stop.
        cost: what all trials may cost together, in runs (2.3 is good; it begins with eight trials and soon rests most
            of them); by default as many runs as there are trials, as in PBT.
        stairs: of the decay, for a class without torch optimisers too; 0 for a smooth one, which a trainable of any
            kind can follow with `rate(config, step)`. By default 0 for classes and 10 for functions.
        key: name of the rate in the configuration.
        metric: what trials are judged by, where `TuneConfig` does not say it.
        mode: "min" or "max", where `TuneConfig` does not say it.
        strategy: another strategy, in place of these.
        seed: of everything random.
    """

    _supports_buffered_results = False

    def __init__(
        self,
        lr: "tuple[float, float]",
        steps: int,
        *,
        cost: float | None = None,
        stairs: int | None = None,
        key: str = "lr",
        metric: str | None = None,
        mode: str | None = None,
        strategy: Strategy | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.lr, self.steps, self.cost, self.stairs = LearningRateRange.of(lr), steps, cost, stairs or 0
        self._choose_stairs = stairs is None
        self.key, self.seed, self.strategy = key, seed, strategy
        self._metric, self._mode = metric, mode
        self._record: Record | None = None
        self._running: dict[str, Running] = {}  # by trial
        self._waiting: list[Running] = []  # for a trial
        self._going: set[int] = set()  # forks that may go on
        self._lost: set[str] = set()  # trials that ended with an error
        self._over = False

    def __getstate__(self) -> dict[str, Any]:
        """The settings; what was done is in the study."""
        return {
            **vars(self),
            "_record": None,
            "_running": {},
            "_waiting": [],
            "_lost": set(),
            "_going": set(),
            "_over": False,
        }

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take what `TuneConfig` says."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        return True

    # what Ray tells

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """A trial is new, restored with its experiment, or to be tried again after an error."""
        record = self._record or self._begin(tune_controller, trial)
        if trial.is_finished():
            return
        register_trainable(
            trial.trainable_name, rated(trial.get_trainable_cls(), self.key, must_hold=self._choose_stairs)
        )
        running = self._running.pop(trial.trial_id, None) or self._meant_for(record, trial)
        if running is None:
            trial.set_status(Trial.PAUSED)  # Ray starts what is pending by itself
        else:
            self._start(record, trial, running)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """One more iteration: go on, or pause at a rung, at a stair, or where training came apart."""
        running = self._running.get(trial.trial_id)
        if running is None:
            return TrialScheduler.PAUSE
        step, value = self._read(result)
        self._check_rate(trial, result, running.proposal.schedule(step - 1))
        running.observe(step, value)
        if running.reported or (
            self.stairs and not np.isclose(running.proposal.schedule(step), trial.config[self.key])
        ):
            return TrialScheduler.PAUSE
        return TrialScheduler.CONTINUE

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """A trial was ended by a criterion, or of its own accord: report on it now, since nothing may follow."""
        running = self._running.pop(trial.trial_id, None)
        if running is None or self._record is None:
            return
        running.observe(*self._read(result))
        if running.sound and running.steps[-1] < self.steps:
            running.failure = f"its trial was ended at iteration {running.steps[-1]:,}, of {self.steps:,}"
        self._hear(self._record, running)

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """A waiting trial was ended: by us, or by whoever runs the experiment."""
        running = self._running.get(trial.trial_id)
        if running is not None and not running.reported:
            running.failure = "its trial was removed"

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """An error: a fork that failed, reported now, since nothing may follow; or the trial is added again soon."""
        if trial.status != Trial.PENDING and trial.should_recover():
            return
        self._lost.add(trial.trial_id)
        running = self._running.pop(trial.trial_id, None)
        if running is None or self._record is None:
            return
        self._hear(self._record, replace(running, failure=f"its trial ended with an error{_last_words(trial)}"))
        self._assign(self._record, {trial.trial_id: trial for trial in tune_controller.get_trials()})

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Take in what has paused, hand out what was decided, and name a trial that can go on."""
        record = self._record
        if record is None:
            return None
        trials: dict[str, Any] = {trial.trial_id: trial for trial in tune_controller.get_trials()}
        for name in [name for name in self._running if name in trials]:
            self._settle(record, trials[name])
        if self._over:
            for trial in trials.values():
                if trial.status in (Trial.PAUSED, Trial.PENDING):
                    tune_controller.stop_trial(trial)
            return None
        self._assign(record, trials)
        return next((t for n, t in trials.items() if n in self._running and t.status == Trial.PAUSED), None)

    def debug_string(self) -> str:
        """One line for Ray's display."""
        stops = {running.proposal.stop for running in self._running.values()}
        return f"Paceline: {len(self._running)} trials on their way to iteration {max(stops, default=self.steps):,}"

    # what follows

    def _begin(self, tune_controller: Any, trial: Any) -> Record:
        """Begin a study in the experiment's folder, or go on with the one that is there."""
        if not self._metric or self._mode not in ("min", "max"):
            raise InputError(
                f'expected a metric and mode "min" or "max", got {self._metric!r} and {self._mode!r}: name them in '
                "TuneConfig"
            )
        storage = trial.storage
        if not isinstance(storage.storage_filesystem, LocalFileSystem):
            raise InputError(
                f"expected a folder, local or shared, as storage_path, got {storage.storage_fs_path}: remote "
                "storage is not supported yet, use runner='ray' of paceline.tune with storage="
            )
        if self._choose_stairs:
            self.stairs = STAIRS if issubclass(trial.get_trainable_cls(), FunctionTrainable) else 0
        record = Record(Path(storage.experiment_fs_path) / "paceline")
        if record.forks and trial.trial_id not in record.forks:
            raise InputError(
                f"{record.folder} belongs to an experiment with other trials: restore that one with Tuner.restore, or "
                "give this one another name in RunConfig"
            )
        if not record.forks:
            record.trials = self._number_of_trials(tune_controller)
        self._record = record
        self._hear(record)
        return record

    def _number_of_trials(self, tune_controller: Any) -> int:
        search = tune_controller.search_alg
        if not isinstance(search, BasicVariantGenerator):
            raise InputError(f"a search algorithm ({type(search).__name__}) cannot be used together: leave it out")
        trials = int(search.total_samples)
        strategy = self._strategy(trials)
        first = strategy.plan.initial_forks if isinstance(strategy, Dynamic) else trials
        limit = search.max_concurrent
        if trials != first or 0 < limit < first:
            raise InputError(
                f"expected num_samples={first} and no limit of concurrent trials, got {trials} trials and a limit of "
                f"{limit or 'none'}: trials that wait are paused, and take no resources"
            )
        return trials

    def _tuner(self, record: Record) -> Tuner:
        assert self._mode is not None
        strategy, folder = self._strategy(record.trials), record.folder
        return Tuner(lr=self.lr, steps=self.steps, strategy=strategy, mode=self._mode, study=folder, seed=self.seed)

    def _strategy(self, trials: int) -> Strategy:
        return self.strategy or strategy_for(trials, steps=self.steps, cost=self.cost, stairs=self.stairs)

    def _hear(self, record: Record, report: "Running | None" = None) -> None:
        """Report on a fork, and hear what is open now; the study is closed in between, so that nothing holds it."""
        with closing(self._tuner(record)) as tuner:
            if report is not None and report.failure:
                tuner.fail(report.proposal, report.failure, report.steps, report.values)
            elif report is not None:
                tuner.tell(report.proposal, report.steps, report.values)
            asked = tuner.ask()
            if asked is None:
                self._over = True
                return
            known = {running.proposal.fork for running in self._running.values()}
            self._waiting = [Running(p, tuner.history.fork(p.fork).origin) for p in asked if p.fork not in known]
            self._going = {fork.id for fork in tuner.history.alive}
            if report is not None and not known:  # a round is over
                record.keep_only({running.origin for running in self._waiting})

    def _settle(self, record: Record, trial: Any) -> None:
        """Take in a trial that has paused or ended: at a stair give it the next rate, at a rung report on it."""
        running = self._running[trial.trial_id]
        stop = running.proposal.stop
        if not (running.failure or trial.status == Trial.PAUSED or trial.is_finished()):
            return
        if running.failure or running.reported:
            if stop < self.steps and running.sound and not running.failure:
                saved = self._checkpoint_of(trial, stop)
                record.keep((running.proposal.fork, stop), Path(saved.checkpoint.path), saved.metrics)
            self._hear(record, self._running.pop(trial.trial_id))
        elif running.steps:
            self._checkpoint_of(trial, running.steps[-1])
            self._configure(trial, running.proposal, running.steps[-1])

    def _assign(self, record: Record, trials: dict[str, Any]) -> None:
        """Give every open proposal a trial, once all are there: a fork its own, a clone one whose fork is dropped."""
        while self._waiting and not self._over and len(trials) >= record.trials:
            running = self._waiting[0]
            fork = running.proposal.fork
            usable = {
                n: record.forks.get(n)
                for n, t in trials.items()
                if n not in self._running and n not in self._lost and not t.is_finished()
            }
            own = [name for name, held in usable.items() if held == fork]
            free = sorted(name for name, held in usable.items() if held not in self._going)
            if own or free:
                self._start(record, trials[(own or free)[0]], running)
            else:
                self._hear(record, replace(running, failure="no trial is left to run it"))

    def _meant_for(self, record: Record, trial: Any) -> Running | None:
        """What a trial that is added should run; the first ones come in the order of their forks."""
        if trial.trial_id not in record.forks and len(record.forks) < record.trials:
            record.forks[trial.trial_id] = len(record.forks)
        fork = record.forks.get(trial.trial_id)
        return next((running for running in self._waiting if running.proposal.fork == fork), None)

    def _start(self, record: Record, trial: Any, running: Running) -> None:
        """Have a trial run a proposal, from the state that this begins with."""
        proposal, origin = running.proposal, running.origin
        self._waiting = [other for other in self._waiting if other.proposal.fork != proposal.fork]
        self._running[trial.trial_id] = Running(proposal, origin)
        record.forks[trial.trial_id] = proposal.fork
        record.save()
        state = None
        if proposal.start:
            state = _TrainingResult(Checkpoint(str(record.place(origin))), record.metrics_of(origin))
        trial.run_metadata.checkpoint_manager._latest_checkpoint_result = state  # no other way in: PBT's too
        self._configure(trial, proposal, proposal.start)

    def _configure(self, trial: Any, proposal: Interval, step: int) -> None:
        config = {**trial.config, self.key: float(proposal.schedule(step))}
        if not self.stairs:
            config[SCHEDULE] = json.dumps(proposal.schedule.to_json())  # Ray shows every entry of a dict in a row
        trial.set_config(config)

    # what a trial says

    def _read(self, result: dict[str, Any]) -> tuple[int, float]:
        missing = [name for name in (ITERATION, str(self._metric)) if name not in result]
        if missing:
            raise InputError(f"expected {missing} in a trial's result, got {sorted(result)}: report it every iteration")
        return int(result[ITERATION]), float(result[str(self._metric)])

    def _check_rate(self, trial: Any, result: dict[str, Any], expected: float) -> None:
        """A trial that says at which rate it trained must have trained at the right one."""
        said = result.get(self.key)
        if said is not None and not np.isclose(float(said), expected, rtol=1e-3):
            raise TrainingError(
                f"trial {trial.trial_id} trained at the rate {said}, expected {expected}: its checkpoint brought back "
                "an old rate; write the new one into the optimiser after loading it, "
                "paceline.integrations.ray_tune.set_rate(optimizer, config['lr'])"
            )

    def _checkpoint_of(self, trial: Any, step: int) -> Any:
        saved = trial.latest_checkpoint_result
        if saved is None or saved.checkpoint is None or saved.metrics.get(ITERATION) != step:
            raise TrainingError(
                f"trial {trial.trial_id} has no checkpoint of iteration {step:,}, where its rate changes: implement "
                "save_checkpoint, or pass a checkpoint with every tune.report"
            )
        return saved


def _last_words(trial: Any) -> str:
    """What a trial raised, ": ValueError: bad batch": the last line of the text that Ray has just written of it."""
    path: str | None = trial.error_file
    text = Path(path).read_text().strip() if path and Path(path).exists() else ""
    return f": {text.splitlines()[-1].strip()}" if text else ""
