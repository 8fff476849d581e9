"""Checks of a runner: whatever it runs forks on, what it reports and the states it keeps are those of `Local`."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paceline.errors import ConformanceError
from paceline.problems import Quadratic, QuadraticTraining
from paceline.runner import Factories, Local, Runner, make_runner
from paceline.study import Checkpoints, Interval, KeepRule, Report
from paceline.testing.failing_training import FailingTraining
from paceline.testing.run_comparison import Observations, different_entry, different_observation, different_weights
from paceline.traces import Schedule
from paceline.training import Training, load_checkpoint

STUDY_SEED = 5
FAILURE_RATES = (0.01, 0.005, 0.0025)  # of three forks: the first trains, the others raise and report NaN
FAILURE_STEPS = 20
UNNAMED = (77, 5)  # fork and step of a file that the study does not know
HIGHEST_IS_BEST = KeepRule(sign=1.0)  # the best value of a loss that falls is an early one, whose state is then kept


def check_runner(
    runner: "str | Callable[[Factories], Runner]",
    *,
    training: "Callable[[], Training] | None" = None,
    steps: int = 20,
    rate: float = 0.01,
    tolerance: float = 0.0,
) -> None:
    """Check that a runner trains intervals as `Local` does, one after the other.

    Args:
        runner: its name, or what makes it of a factory, as for `paceline.tune`.
        training: builds one run, for a runner that needs a certain kind; by default a small quadratic.
        steps: updates of each run.
        rate: the highest learning rate.
        tolerance: relative difference of numbers that count as equal; see `check_training`.
    """
    make_training = training or partial(QuadraticTraining, Quadratic(dims=20), every=2)
    other_task = None if training else partial(QuadraticTraining, Quadratic(noise=3.0, dims=20), 1, every=2)
    with TemporaryDirectory(prefix="paceline-check-") as folder:
        case = _Case(make_training, steps, rate, tolerance, Path(folder))
        expected = case.outcome(Local, "expected")
        _check_like_local(case, case.outcome(runner, "checked"), expected)
        if other_task is not None:
            _check_tasks(case, runner, other_task)
        _check_failures(case.folder, runner)


@dataclass
class _Outcome:
    """What a runner did with the intervals of a small study."""

    intervals: dict[tuple[int, int], Interval] = field(default_factory=dict[tuple[int, int], Interval])
    reports: dict[tuple[int, int], Report] = field(default_factory=dict[tuple[int, int], Report])
    states: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict[tuple[int, int], dict[str, Any]])
    observed: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])


@dataclass(frozen=True)
class _Case:
    make_training: Callable[[], Training]
    steps: int
    rate: float
    tolerance: float
    folder: Path

    @property
    def middle(self) -> int:
        return self.steps // 2

    def first_intervals(self, rates: Sequence[float], task: int = 0) -> list[Interval]:
        """A fork at each of these rates, which are factors of the highest."""
        return [
            Interval(fork, None, 0, self.middle, Schedule([self.rate * factor], [0, self.middle], self.steps), 1, task)
            for fork, factor in enumerate(rates)
        ]

    def next_interval(self, before: Interval, *, clone: int | None = None) -> Interval:
        """The rest of a run: the fork goes on, or a clone of it at a third of its rate begins."""
        rate = before.multiplier * (1.0 if clone is None else 1 / 3)
        schedule, parent = before.schedule.extend(rate, self.steps), None if clone is None else before.fork
        fork = before.fork if clone is None else clone
        return Interval(fork, parent, self.middle, self.steps, schedule, 2, before.task)

    def outcome(self, make: "str | Callable[[Factories], Runner]", name: str) -> _Outcome:
        """Three forks, of which one is dropped; the others go on, beside a clone of the first."""
        outcome = _Outcome()
        with self.open(make, self.make_training, name) as started:
            started.on_step = lambda fork, step: outcome.observed.add((fork, step))
            started.keep_rule = lambda interval: HIGHEST_IS_BEST
            start = started.checkpoints.path(0, 0)
            first = self.first_intervals((1.0, 1 / 2, 1 / 4))
            _prepare(started, 0)
            outcome.states[0, 0] = _state(started, start)
            _run_round(started, first, outcome)
            _prepare(started, 0)
            if different_entry(outcome.states[0, 0], _state(started, start), 0.0):
                raise ConformanceError(
                    "prepare wrote the first state again, and it is another one now: leave a state that is there alone"
                )
            kept = [started.checkpoints.target(interval) for interval in first[:2]]
            mine = [started.checkpoints.folder / "best.ckpt", started.checkpoints.path(*UNNAMED)]
            for path in mine:
                path.parent.mkdir(exist_ok=True)
                path.touch()
            started.is_named = lambda fork, step: (fork, step) != UNNAMED
            started.keep_only(set(kept))
            _check_kept(started, kept, [start, started.checkpoints.target(first[2])], mine)
            second = [self.next_interval(before) for before in first[:2]]
            _run_round(started, [*second, self.next_interval(first[0], clone=3)], outcome)
        return outcome

    def open(self, make: "str | Callable[[Factories], Runner]", factories: Factories, name: str) -> "closing[Runner]":
        """The runner, working for a study in a folder of its own."""
        started = make_runner(make, factories)
        (self.folder / name).mkdir()
        started.attach(Checkpoints(self.folder / name / "checkpoints"), STUDY_SEED)
        return closing(started)


def _prepare(runner: Runner, task: int) -> None:
    runner.prepare(task)
    path = runner.checkpoints.path(task, 0)
    runner.fetch(path)
    if not path.exists():
        raise ConformanceError(
            f"after prepare({task}) there is no {path.name}: write the state of an untrained run to "
            "checkpoints.path(task, 0)"
        )


def _run_round(runner: Runner, intervals: list[Interval], outcome: _Outcome) -> None:
    """Run intervals and note what came back; failures are what the caller looks at."""
    waiting = {interval.fork: interval for interval in intervals}
    for report in runner.run(intervals):
        if not isinstance(report, Report):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConformanceError(f"run yielded {report!r}: yield a Report for each interval")
        interval = waiting.pop(report.fork, None)
        if interval is None:
            raise ConformanceError(
                f"run yielded a report on fork {report.fork}, which was not asked for or has been reported on: yield "
                "one report for each interval"
            )
        _check_report(runner, interval, report)
        key = interval.fork, interval.stop
        outcome.intervals[key], outcome.reports[key] = interval, report
        if report.failure is None:
            outcome.states[key] = _state(runner, runner.checkpoints.target(interval))
        if report.kept:
            outcome.states[interval.fork, report.kept] = _state(runner, _check_best(runner, report))
    if waiting:
        raise ConformanceError(
            f"run ended without a report on fork {min(waiting)}: yield one for each interval, with a failure if it is "
            "lost; the study waits for all of them"
        )


def _check_report(runner: Runner, interval: Interval, report: Report) -> None:
    if report.start != interval.start or (report.failure is None and report.stop != interval.stop):
        raise ConformanceError(
            f"the report on fork {report.fork} is of steps {report.start:,} to {report.stop:,}, expected "
            f"{interval.start:,} to {interval.stop:,}: copy start and stop from the interval"
        )
    if any(len(column) != len(report.steps) for column in report.values.values()):
        raise ConformanceError(
            f"the report on fork {report.fork} has {len(report.steps)} steps and columns of "
            f"{sorted({len(column) for column in report.values.values()})} values: report one value per step"
        )
    target = runner.checkpoints.target(interval)
    if report.failure is None:
        runner.fetch(target)
        if not target.exists():
            raise ConformanceError(
                f"the report on fork {report.fork} came before its checkpoint {target.name}: write the state to "
                "checkpoints.target(interval) first, a study that is killed in between could not continue"
            )


def _check_best(runner: Runner, report: Report) -> Path:
    """The checkpoint of the best observation, which must be there."""
    assert report.kept is not None
    path = runner.checkpoints.path(report.fork, report.kept)
    runner.fetch(path)
    if not path.exists():
        raise ConformanceError(
            f"the report on fork {report.fork} says that the state at step {report.kept:,} was kept, and there is no "
            f"{path.name}: write the state of an observation that satisfies keep_rule(interval) before the report"
        )
    return path


def _check_kept(runner: Runner, kept: list[Path], others: list[Path], mine: list[Path]) -> None:
    for path in mine:
        if not path.exists():
            raise ConformanceError(
                f"keep_only deleted {path.name}, which is no checkpoint of the study: delete only those that "
                "checkpoints.files() lists and is_named(fork, step) knows"
            )
    for path in kept:
        runner.fetch(path)
        if not path.exists():
            raise ConformanceError(f"keep_only deleted {path.name}, which is needed: delete all checkpoints but those")
    for path in others:
        if path.exists():
            raise ConformanceError(
                f"keep_only left {path.name}, which is not needed: delete it, or a study fills the disk"
            )


def _check_like_local(case: _Case, outcome: _Outcome, expected: _Outcome) -> None:
    for key, report in expected.reports.items():
        fork, stop = key
        name = f"fork {fork}, steps {report.start:,} to {stop:,}"
        other = outcome.reports[key]
        if other.failure is not None:
            raise ConformanceError(f"{name}: the runner reported the failure {other.failure}, with `Local` it trains")
        if other.steps != report.steps:
            raise ConformanceError(
                f"{name}: it reported on steps {list(other.steps)}, with `Local` it is {list(report.steps)}: begin at "
                "the state of prepare, and report every observation"
            )
        if other.kept != report.kept:
            raise ConformanceError(
                f"{name}: it kept the state at step {other.kept}, with `Local` it is {report.kept}: keep that of the "
                "best observation that satisfies keep_rule(interval), and say so with Report(kept=step)"
            )
        difference = different_observation(_observations(report), _observations(other), case.tolerance)
        entry = different_weights(expected.states[key], outcome.states[key], case.tolerance)
        if report.kept and not entry:
            best = fork, report.kept
            entry = different_weights(expected.states[best], outcome.states[best], case.tolerance)
        if not difference and not entry:
            continue
        what = difference or f"the state at step {stop:,} differs in {entry!r}"
        raise ConformanceError(f"{name}: it differs from the same interval with `Local` ({what}): {_advice(case, key)}")
    missing = {(r.fork, step) for r in outcome.reports.values() for step in r.steps} - outcome.observed
    if missing:
        fork, step = min(missing)
        raise ConformanceError(
            f"on_step was not called with ({fork}, {step}): call it for each observation, live views follow it"
        )


def _advice(case: _Case, key: tuple[int, int]) -> str:
    fork, stop = key
    if stop == case.middle:
        return "begin from checkpoints.origin(interval), and follow interval.schedule"
    if fork == 3:
        return "a clone begins from its parent's state, then the training is reseeded with clone_seed(interval)"
    return "a fork that goes on begins from its own state, and is not reseeded"


def _check_tasks(
    case: _Case, runner: "str | Callable[[Factories], Runner]", other_task: Callable[[], Training]
) -> None:
    """The runs of a family: each begins from the state of its own task, and trains on its own data."""
    factories = [case.make_training, other_task]
    outcomes = list[_Outcome]()
    for make, name in ((Local, "expected tasks"), (runner, "tasks")):
        outcome = _Outcome()
        with case.open(make, factories, name) as started:
            for task in range(2):
                _prepare(started, task)
            of_each = [case.first_intervals((1.0,), task)[0] for task in range(2)]
            forks = [Interval(i + 2, None, 0, one.stop, one.schedule, 1, one.task) for i, one in enumerate(of_each)]
            _run_round(started, forks, outcome)
        outcomes.append(outcome)
    expected, outcome = outcomes
    for key, report in expected.reports.items():
        difference = different_observation(_observations(report), _observations(outcome.reports[key]), case.tolerance)
        if difference:
            raise ConformanceError(
                f"a run of task {expected.intervals[key].task} differs from that with `Local` ({difference}): build "
                "the training of interval.task, and begin from the state of that task"
            )


def _check_failures(folder: Path, runner: "str | Callable[[Factories], Runner]") -> None:
    """A fork that raises or reports NaN is a report with a failure; the others are not disturbed."""
    highest, raises, not_finite = FAILURE_RATES
    case = _Case(partial(FailingTraining, raises, not_finite), FAILURE_STEPS, highest, 0.0, folder)
    outcome = _Outcome()
    with case.open(runner, case.make_training, "failures") as started:
        first = case.first_intervals([rate / highest for rate in FAILURE_RATES])
        _prepare(started, 0)
        try:
            _run_round(started, first, outcome)
            if outcome.reports[0, case.middle].failure is None:
                _run_round(started, [case.next_interval(first[0])], outcome)
        except ConformanceError:
            raise
        except Exception as error:
            raise ConformanceError(
                f"run raised {type(error).__name__} when the training of one fork raised or was not finite ({error}): "
                "return a Report with a failure, the other forks continue"
            ) from error
    for fork, expected in enumerate((None, "raised", "not finite")):
        failure = outcome.reports[fork, case.middle].failure
        kind = None if failure is None else failure.kind
        if kind != expected:
            raise ConformanceError(
                f"fork {fork} of three was reported with the failure {kind}, expected {expected}: an exception of the "
                'training is a failure of kind "raised", a value of NaN one of kind "not finite"'
            )
    for fork in (1, 2):
        if not outcome.reports[fork, case.middle].steps:
            raise ConformanceError(
                f"the report on fork {fork}, which failed, has no observations: report those until it failed"
            )


def _state(runner: Runner, path: Path) -> dict[str, Any]:
    runner.fetch(path)
    return load_checkpoint(path)


def _observations(report: Report) -> Observations:
    rows = [dict(zip(report.values, row, strict=True)) for row in zip(*report.values.values(), strict=True)]
    return list(zip(report.steps, rows, strict=True))
