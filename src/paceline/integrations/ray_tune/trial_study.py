"""The study behind the trials of an experiment: which intervals are open, which trial runs which, and reports on them.

The study is opened for each report and closed again, so that nothing holds its lock in between. What a restored
experiment needs is on disk before a trial gets a new interval.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from paceline.integrations.ray_tune.trial_interval import TrialInterval
from paceline.integrations.ray_tune.trial_record import TrialRecord
from paceline.tuner import Tuner


class TrialStudy:
    """A study whose forks are trials.

    Args:
        record: which trial runs which fork, on disk.
        open_tuner: opens the study.
    """

    def __init__(self, record: TrialRecord, open_tuner: Callable[[], Tuner]) -> None:
        self.record, self._open_tuner = record, open_tuner
        self.running: dict[str, TrialInterval] = {}  # by the name of a trial
        self.is_over = False
        self._waiting: list[TrialInterval] = []  # for a trial
        self._alive: set[int] = set()  # forks that may go on
        self._failed_trials: set[str] = set()

    def report(self, finished: "TrialInterval | None" = None) -> None:
        """Report on an interval, if one is given, and read which intervals are open now."""
        with closing(self._open_tuner()) as tuner:
            if finished is not None and finished.failure:
                tuner.fail(finished.interval, finished.failure, finished.steps, finished.values)
            elif finished is not None:
                tuner.tell(finished.interval, finished.steps, finished.values)
            open_intervals = tuner.ask()
            if open_intervals is None:
                self.is_over = True
                return
            running = {each.interval.fork for each in self.running.values()}
            self._waiting = [
                TrialInterval(interval, tuner.history.fork(interval.fork).origin)
                for interval in open_intervals
                if interval.fork not in running
            ]
            self._alive = {fork.id for fork in tuner.history.alive}
            if finished is not None and not running:  # a round is over: no other state is needed any more
                self.record.keep_only({each.origin for each in self._waiting})

    def start(self, trial: str, waiting: TrialInterval) -> TrialInterval:
        """Give a trial an interval that waits for one, or again one that was interrupted."""
        started = TrialInterval(waiting.interval, waiting.origin)
        self._waiting = [other for other in self._waiting if other.interval.fork != started.interval.fork]
        self.running[trial] = started
        self.record.fork_of[trial] = started.interval.fork
        self.record.save()
        return started

    def interval_for_added(self, trial: str) -> TrialInterval | None:
        """What a trial that Ray adds should run: its own interval again, or a new one in the order of the forks."""
        interrupted = self.running.pop(trial, None)
        if interrupted is not None:
            return interrupted
        forks = self.record.fork_of
        if trial not in forks and len(forks) < self.record.count:
            forks[trial] = len(forks)
        return next((each for each in self._waiting if each.interval.fork == forks.get(trial)), None)

    def mark_failed(self, trial: str) -> None:
        """A trial that ended with an error runs nothing any more."""
        self._failed_trials.add(trial)

    def next_assignment(self, trials: "dict[str, bool]") -> tuple[str, TrialInterval] | None:
        """A trial and an interval for it; None if nothing waits, or until all trials are there.

        A fork gets its own trial. A clone gets one whose fork is dropped. If no trial is left, the interval fails.

        Args:
            trials: the trials by name, and whether each has ended.
        """
        while self._waiting and not self.is_over and len(trials) >= self.record.count:
            waiting = self._waiting[0]
            usable = {
                name: self.record.fork_of.get(name)
                for name, has_ended in trials.items()
                if name not in self.running and name not in self._failed_trials and not has_ended
            }
            own = [name for name, fork in usable.items() if fork == waiting.interval.fork]
            free = sorted(name for name, fork in usable.items() if fork not in self._alive)
            if own or free:
                return (own or free)[0], waiting
            self.report(replace(waiting, failure="no trial is left to run it"))
        return None
