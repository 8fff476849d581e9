"""A Ray Tune scheduler that uses our tuner: trials are forks, and they pause at the rungs of the plan.

Everything that decides what comes next is in a study inside the experiment's folder, on disk before a trial gets it.
Ray does not save schedulers: `Tuner.restore` passes on the scheduler as it was before the start. This one then goes on
from the study, with every interrupted fork back at the beginning of its interval.
"""

import json
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
from paceline.integrations.ray_tune.trial_interval import TrialInterval
from paceline.integrations.ray_tune.trial_rates import SCHEDULE_KEY, staircase, with_rate_kept
from paceline.integrations.ray_tune.trial_record import TrialRecord
from paceline.integrations.ray_tune.trial_study import TrialStudy
from paceline.strategy import Dynamic, Strategy
from paceline.study import Interval
from paceline.traces import LearningRateRange, Mode
from paceline.tuner import Tuner

ITERATION = "training_iteration"
FUNCTION_STAIRS = 10  # of the decay, for functions, which are restarted to get another rate


class PacelineScheduler(TrialScheduler):
    """Tunes the learning rate while trials train, in place of `PopulationBasedTraining` or `PB2`.

    Each trial is a fork. At rungs the best go on; others load the checkpoint of the best and go on from there at
    another rate. The rate holds, then decays to zero. A trainable class has it written into its torch optimisers
    before every iteration. A function gets it as `config["lr"]`, in stairs: at each, it is checkpointed and restarted.
    The study is kept in the folder `paceline` of the experiment, for `paceline show`, `export` and the rest.

    Args:
        lr: lower and upper bound of the rate.
        steps: length of a run, in training iterations; trials need no other criterion to stop.
        cost: what all trials may cost together, in runs (2.3 is good; it begins with eight trials and soon pauses most
            of them); by default as many runs as there are trials, as in PBT.
        stairs: of the decay, for a class without torch optimisers too; 0 for a smooth decay, which a trainable of any
            kind can follow with `rate(config, step)`. By default 0 for classes and 10 for functions.
        key: name of the rate in the configuration.
        metric: what trials are judged by, if `TuneConfig` does not name it.
        mode: "min" or "max", if `TuneConfig` does not name it.
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
        self._study: TrialStudy | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The settings; everything else is in the study."""
        return {**vars(self), "_study": None}

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take metric and mode from `TuneConfig`."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        return True

    # called by Ray

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """A trial is new, restored with its experiment, or to be tried again after an error."""
        study = self._study or self._open_study(tune_controller, trial)
        if trial.is_finished():
            return
        trainable = with_rate_kept(trial.get_trainable_cls(), self.key, needs_optimizer=self._choose_stairs)
        register_trainable(trial.trainable_name, trainable)
        interval = study.interval_for_added(trial.trial_id)
        if interval is None:
            trial.set_status(Trial.PAUSED)  # Ray would start a pending trial by itself
        else:
            self._start(study, trial, interval)

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """One more iteration: go on, or pause at a rung, at a stair, or if training diverged."""
        running = self._running(trial)
        if running is None:
            return TrialScheduler.PAUSE
        step, value = self._step_and_value(result)
        schedule = running.interval.schedule
        self._check_rate(trial, result, schedule(step - 1))
        running.observe(step, value)
        is_stair = self.stairs and not np.isclose(schedule(step), trial.config[self.key])
        return TrialScheduler.PAUSE if running.is_done or is_stair else TrialScheduler.CONTINUE

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """A trial was ended by a criterion, or by itself: report on it now, because Ray may not call again."""
        running = self._running(trial)
        if running is None or self._study is None:
            return
        running.observe(*self._step_and_value(result))
        if running.is_sound and running.steps[-1] < self.steps:
            running.failure = f"its trial was ended at iteration {running.steps[-1]:,}, of {self.steps:,}"
        self._study.report(self._study.running.pop(trial.trial_id))

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """A waiting trial was ended: by this scheduler, or by whoever runs the experiment."""
        running = self._running(trial)
        if running is not None and not running.is_done:
            running.failure = "its trial was removed"

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """A trial raised an error. Unless Ray tries it again, its fork failed: report it, as Ray may not call again."""
        if trial.status != Trial.PENDING and trial.should_recover():
            return
        study = self._study
        if study is None:
            return
        study.mark_failed(trial.trial_id)
        running = study.running.pop(trial.trial_id, None)
        if running is None:
            return
        study.report(replace(running, failure=f"its trial ended with an error{_error_of(trial)}"))
        self._assign_trials(study, {trial.trial_id: trial for trial in tune_controller.get_trials()})

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Report on trials that have paused, give them new intervals, and return a trial that can go on."""
        study = self._study
        if study is None:
            return None
        trials: dict[str, Any] = {trial.trial_id: trial for trial in tune_controller.get_trials()}
        for name in [name for name in study.running if name in trials]:
            self._read_paused_trial(study, trials[name])
        if study.is_over:
            for trial in trials.values():
                if trial.status in (Trial.PAUSED, Trial.PENDING):
                    tune_controller.stop_trial(trial)
            return None
        self._assign_trials(study, trials)
        return next((t for name, t in trials.items() if name in study.running and t.status == Trial.PAUSED), None)

    def debug_string(self) -> str:
        """One line for Ray's display."""
        running = {} if self._study is None else self._study.running
        stop = max((each.interval.stop for each in running.values()), default=self.steps)
        return f"Paceline: {len(running)} trials train up to iteration {stop:,}"

    # the study

    def _open_study(self, tune_controller: Any, trial: Any) -> TrialStudy:
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
            self.stairs = FUNCTION_STAIRS if issubclass(trial.get_trainable_cls(), FunctionTrainable) else 0
        record = TrialRecord(Path(storage.experiment_fs_path) / "paceline")
        if record.fork_of and trial.trial_id not in record.fork_of:
            raise InputError(
                f"{record.folder} belongs to an experiment with other trials: restore that one with Tuner.restore, or "
                "give this one another name in RunConfig"
            )
        if not record.fork_of:
            record.count = self._number_of_trials(tune_controller)
        study = TrialStudy(record, lambda: self._open_tuner(record))
        self._study = study
        study.report()
        return study

    def _number_of_trials(self, tune_controller: Any) -> int:
        """How many trials there are; an error if the strategy needs another number."""
        search = tune_controller.search_alg
        if not isinstance(search, BasicVariantGenerator):
            raise InputError(f"a search algorithm ({type(search).__name__}) cannot be used together: leave it out")
        trials = int(search.total_samples)
        strategy = self._strategy_for(trials)
        needed = strategy.plan.initial_forks if isinstance(strategy, Dynamic) else trials
        limit = search.max_concurrent
        if trials != needed or 0 < limit < needed:
            raise InputError(
                f"expected num_samples={needed} and no limit of concurrent trials, got {trials} trials and a limit of "
                f"{limit or 'none'}: trials that wait are paused, and take no resources"
            )
        return trials

    def _open_tuner(self, record: TrialRecord) -> Tuner:
        mode: Mode = "max" if self._mode == "max" else "min"
        strategy, folder = self._strategy_for(record.count), record.folder
        return Tuner(lr=self.lr, steps=self.steps, strategy=strategy, mode=mode, study=folder, seed=self.seed)

    def _strategy_for(self, trials: int) -> Strategy:
        """The strategy. The default one is judged by raw weights: a trial reports only one value, which is of these."""
        if self.strategy is not None:
            return self.strategy
        if self.cost is None and trials < 2:
            raise InputError(f"expected at least two trials to compare, got num_samples={trials}: pass 4, or 8")
        base = staircase(self.steps, self.stairs) if self.stairs else None
        if self.cost is None:
            return replace(Dynamic.horizon(base=base, forks=trials), weights="raw")
        return replace(Dynamic.horizon(base=base, cost=self.cost), weights="raw")

    # trials

    def _running(self, trial: Any) -> TrialInterval | None:
        """The interval that a trial runs."""
        return None if self._study is None else self._study.running.get(trial.trial_id)

    def _read_paused_trial(self, study: TrialStudy, trial: Any) -> None:
        """If a trial has paused or ended: at a stair give it the next rate, at a rung report on it."""
        running = study.running[trial.trial_id]
        interval = running.interval
        if not (running.failure or trial.status == Trial.PAUSED or trial.is_finished()):
            return
        if running.failure or running.is_done:
            if interval.stop < self.steps and running.is_sound and not running.failure:
                saved = self._checkpoint_of(trial, interval.stop)
                study.record.add_state((interval.fork, interval.stop), Path(saved.checkpoint.path), saved.metrics)
            study.report(study.running.pop(trial.trial_id))
        elif running.steps:
            self._checkpoint_of(trial, running.steps[-1])  # an error if there is none
            self._configure(trial, interval, running.steps[-1])

    def _assign_trials(self, study: TrialStudy, trials: dict[str, Any]) -> None:
        """Give every interval that waits a trial, once all trials are there."""
        has_ended = {name: bool(trial.is_finished()) for name, trial in trials.items()}
        while (assignment := study.next_assignment(has_ended)) is not None:
            name, waiting = assignment
            self._start(study, trials[name], waiting)

    def _start(self, study: TrialStudy, trial: Any, waiting: TrialInterval) -> None:
        """Let a trial run an interval, from the state that it begins from."""
        started = study.start(trial.trial_id, waiting)
        state = None
        if started.interval.start:
            checkpoint = Checkpoint(str(study.record.checkpoint(started.origin)))
            state = _TrainingResult(checkpoint, study.record.metrics_of(started.origin))
        # Ray has no public way to set this; its own PBT does the same
        trial.run_metadata.checkpoint_manager._latest_checkpoint_result = state
        self._configure(trial, started.interval, started.interval.start)

    def _configure(self, trial: Any, interval: Interval, step: int) -> None:
        config = {**trial.config, self.key: float(interval.schedule(step))}
        if not self.stairs:
            config[SCHEDULE_KEY] = json.dumps(interval.schedule.to_json())  # Ray would show a dict entry by entry
        trial.set_config(config)

    # results

    def _step_and_value(self, result: dict[str, Any]) -> tuple[int, float]:
        missing = [name for name in (ITERATION, str(self._metric)) if name not in result]
        if missing:
            raise InputError(f"expected {missing} in a trial's result, got {sorted(result)}: report it every iteration")
        return int(result[ITERATION]), float(result[str(self._metric)])

    def _check_rate(self, trial: Any, result: dict[str, Any], expected: float) -> None:
        """If a trial reports the rate that it trained at, this must be the one that was decided."""
        reported = result.get(self.key)
        if reported is not None and not np.isclose(float(reported), expected, rtol=1e-3):
            raise TrainingError(
                f"trial {trial.trial_id} trained at the rate {reported}, expected {expected}: its checkpoint brought "
                "back an old rate; write the new one into the optimiser after loading it, "
                "paceline.integrations.ray_tune.set_rate(optimizer, config['lr'])"
            )

    def _checkpoint_of(self, trial: Any, step: int) -> Any:
        saved = trial.latest_checkpoint_result
        if saved is None or saved.checkpoint is None or saved.metrics.get(ITERATION) != step:
            raise TrainingError(
                f"trial {trial.trial_id} has no checkpoint of iteration {step:,}, after which its rate changes: "
                "implement save_checkpoint, or pass a checkpoint with every tune.report"
            )
        return saved


def _error_of(trial: Any) -> str:
    """The error of a trial, ": ValueError: bad batch": the last line of the file that Ray has just written."""
    path: str | None = trial.error_file
    text = Path(path).read_text().strip() if path and Path(path).exists() else ""
    return f": {text.splitlines()[-1].strip()}" if text else ""
