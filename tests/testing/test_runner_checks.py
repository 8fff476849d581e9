"""The check passes our own runners, and finds the fault in each broken one. Ray is in tests/runner/test_ray.py."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paceline.runner import Local, Runner, Streams
from paceline.study import Failure, Interval, Report
from paceline.testing import ConformanceError, check_runner
from tests.training.example_trainings import device_digits
from tests.training.host_stream import HostWorkStream


def test_local_conforms() -> None:
    check_runner("local")


def test_streams_conform_on_the_host() -> None:
    streams = partial(Streams, make_stream=HostWorkStream)
    with pytest.warns(UserWarning, match="the training is a FailingTraining"):  # it says what it cannot record
        check_runner(streams, training=device_digits, tolerance=1e-2)


class LosesAReport(Local):
    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        yield from list(super().run(intervals))[:-1]


class ReportsTwice(Local):
    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        for report in super().run(intervals):
            yield report
            yield report


class YieldsPairs(Local):
    def run(self, intervals: Sequence[Interval]) -> Iterator[Any]:
        for report in super().run(intervals):
            yield report.fork, report.values


class ReportsBeforeTheCheckpoint(Local):
    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        for report in super().run(intervals):
            path = self.checkpoints.path(report.fork, report.stop)
            content = path.read_bytes()
            path.unlink()
            yield report
            path.write_bytes(content)


class ChangedReports(Local):
    def change(self, report: Report) -> Report:
        return report

    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        yield from map(self.change, super().run(intervals))


class WrongStart(ChangedReports):
    def change(self, report: Report) -> Report:
        return replace(report, start=0)


class WrongStop(ChangedReports):
    def change(self, report: Report) -> Report:
        return replace(report, stop=report.stop + 1)


class UnevenColumns(ChangedReports):
    def change(self, report: Report) -> Report:
        return replace(report, steps=report.steps[1:])


class LastObservationOnly(ChangedReports):
    def change(self, report: Report) -> Report:
        values = {weights: column[-1:] for weights, column in report.values.items()}
        return replace(report, steps=report.steps[-1:], values=values)


class FailsAFork(ChangedReports):
    def change(self, report: Report) -> Report:
        return replace(report, failure=Failure("lost")) if report.fork == 1 else report


class AnotherKindOfFailure(ChangedReports):
    def change(self, report: Report) -> Report:
        return report if report.failure is None else replace(report, failure=Failure("lost"))


class NoObservationsOfFailures(ChangedReports):
    def change(self, report: Report) -> Report:
        return report if report.failure is None else replace(report, steps=(), values={})


class ChangedIntervals(Local):
    def change(self, interval: Interval) -> Interval:
        return interval

    def train(self, interval: Interval) -> Any:
        report = yield from super().train(self.change(interval))
        return report


class FollowsAnotherRate(ChangedIntervals):
    def change(self, interval: Interval) -> Interval:
        schedule = replace_rate(interval, 0.9)
        return replace(interval, schedule=schedule)


def replace_rate(interval: Interval, factor: float) -> Any:
    schedule = interval.schedule
    return type(schedule)(schedule.multipliers * factor, schedule.change_points, schedule.steps, schedule.base)


class OneTaskForAll(ChangedIntervals):
    def change(self, interval: Interval) -> Interval:
        return replace(interval, task=0)


class NoReseed(Local):
    def clone_seed(self, interval: Interval) -> int | None:
        return None


class ReseedsEveryFork(Local):
    def clone_seed(self, interval: Interval) -> int | None:
        return interval.fork + interval.start


class ClonesGoOnAfterTheirParent(Local):
    """A clone begins from the state that happens to be in memory."""

    def _load(self, interval: Interval) -> None:
        if interval.parent is None:
            super()._load(interval)


class SilentSteps(Local):
    def train(self, interval: Interval) -> Any:
        generator = super().train(interval)
        while True:
            try:
                next(generator)
            except StopIteration as end:
                return end.value
        yield


class KeepsEverything(Local):
    def keep_only(self, needed: set[Path]) -> None:
        pass


class KeepsNothing(Local):
    def keep_only(self, needed: set[Path]) -> None:
        super().keep_only(set())


class DeletesAll(Local):
    def keep_only(self, needed: set[Path]) -> None:
        for path in set(self.checkpoints.folder.iterdir()) - needed:
            path.unlink()


class DeletesWhatItDoesNotKnow(Local):
    def keep_only(self, needed: set[Path]) -> None:
        self.is_named = lambda fork, step: True
        super().keep_only(needed)


class PreparesAgain(Local):
    def prepare(self, task: int = 0) -> None:
        self.turn_to(task)
        self._save(self.checkpoints.path(task, 0))


class PreparesNothing(Local):
    def prepare(self, task: int = 0) -> None:
        pass


class PreparesATrainedRun(Local):
    def prepare(self, task: int = 0) -> None:
        if not self.checkpoints.path(task, 0).exists():
            self.turn_to(task)
            first = Interval(0, None, 0, 2, _schedule(), 1)
            list(self.training.advance(first.schedule, 2))
            self._save(self.checkpoints.path(task, 0))


def _schedule() -> Any:
    from paceline import Schedule

    return Schedule.constant(0.01, 20)


class KeepsNoBest(ChangedReports):
    def change(self, report: Report) -> Report:
        return replace(report, kept=None)


class LosesTheBest(ChangedReports):
    def change(self, report: Report) -> Report:
        self.checkpoints.path(report.fork, report.kept or 0).unlink(missing_ok=True)
        return report


class LetsFailuresThrough(ChangedReports):
    def change(self, report: Report) -> Report:
        if report.failure is not None:
            raise RuntimeError(report.failure.message)
        return report


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LosesAReport, "run ended without a report on fork 2: yield one for each interval"),
        (ReportsTwice, "a report on fork 0, which was not asked for or has been reported on"),
        (YieldsPairs, "yield a Report for each interval"),
        (ReportsBeforeTheCheckpoint, "the report on fork 0 came before its checkpoint 0-10.pt"),
        (WrongStart, "the report on fork 0 is of steps 0 to 20, expected 10 to 20"),
        (WrongStop, "the report on fork 0 is of steps 0 to 11, expected 0 to 10"),
        (UnevenColumns, r"the report on fork 0 has 4 steps and columns of \[5\] values"),
        (LastObservationOnly, r"it reported on steps \[10\], with `Local` it is \[2, 4, 6, 8, 10\]"),
        (FailsAFork, "fork 1, steps 0 to 10: the runner reported the failure"),
        (AnotherKindOfFailure, "fork 1 of three was reported with the failure lost, expected raised"),
        (NoObservationsOfFailures, "the report on fork 1, which failed, has no observations"),
        (FollowsAnotherRate, "fork 0, steps 0 to 10: it differs.*follow interval.schedule"),
        (OneTaskForAll, "a run of task 1 differs from that with `Local`"),
        (NoReseed, r"fork 3, steps 10 to 20: it differs.*reseeded with clone_seed\(interval\)"),
        (ReseedsEveryFork, "fork 1, steps 0 to 10: it differs"),
        (ClonesGoOnAfterTheirParent, "fork 3, steps 10 to 20"),
        (SilentSteps, r"on_step was not called with \(0, 2\)"),
        (KeepsEverything, "keep_only left 0-0.pt, which is not needed"),
        (KeepsNothing, "keep_only deleted 0-10.pt, which is needed"),
        (DeletesAll, "keep_only deleted best.ckpt, which is no checkpoint of the study: delete only those that"),
        (DeletesWhatItDoesNotKnow, "keep_only deleted 77-5.pt, which is no checkpoint of the study"),
        (PreparesAgain, "prepare wrote the first state again"),
        (PreparesNothing, r"after prepare\(0\) there is no 0-0.pt"),
        (PreparesATrainedRun, r"it reported on steps \[4, 6, 8, 10\].*begin at the state of prepare"),
        (KeepsNoBest, "fork 0, steps 0 to 10: it kept the state at step None, with `Local` it is 2"),
        (LosesTheBest, "the state at step 2 was kept, and there is no 0-2.pt"),
        (LetsFailuresThrough, "run raised RuntimeError when the training of one fork raised or was not finite"),
    ],
)
def test_each_fault_is_found(broken: Callable[[Any], Runner], message: str) -> None:
    with pytest.raises(ConformanceError, match=message):
        check_runner(broken)
