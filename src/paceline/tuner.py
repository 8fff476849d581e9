"""The one loop: ask a strategy what to run, tell it what was observed, write both down.

The same object serves people who drive it by hand (`ask`, `tell`, `fail`) and runners. Nothing is kept but the journal:
opening a study again replays it and goes on where it stopped.
"""

import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from paceline.errors import InputError, JournalError, TrainingError
from paceline.runner import Local, Runner, Task
from paceline.strategy import Decision, Fork, Goal, History, Proposal, Strategy, horizon
from paceline.study import Cloned, Created, Decided, Dropped, Event, Failed, Finished, Journal, Observed, Proposed
from paceline.study.study import checkpoint_path, read_settings, write_settings
from paceline.traces import LearningRateRange, Objective, Schedule, Trace
from paceline.training import Training, load_checkpoint

Values = Sequence[float] | Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a study found.

    Args:
        schedule: the learning rate of the best fork, from step 0 to the end.
        value: its value at the end, in the user's units, None where every fork failed.
        fork: its number.
        of: which weights the value is of, "raw" or "averaged", whichever ended better.
        history: everything that was observed.
        advice: what to do where there is no result.
        state: the best fork's last checkpoint, or its content.
    """

    schedule: Schedule | None
    value: float | None
    fork: int | None
    of: str
    history: History
    advice: str = ""
    state: "Path | dict[str, Any] | None" = None

    def weights(self) -> dict[str, Any]:
        """State dict of the best fork's model, raw or averaged as `of` says."""
        if self.state is None:
            raise InputError("this study was driven by hand: the weights are where your own training keeps them")
        state = load_checkpoint(self.state) if isinstance(self.state, Path) else self.state
        if self.of == "averaged" and state.get("average"):
            prefix = "module."
            return {k.removeprefix(prefix): v for k, v in state["average"].items() if k.startswith(prefix)}
        return state.get("model", state)


class Tuner:
    """Tunes one run by ask and tell.

    Args:
        lr: lower and upper bound of the rate.
        steps: length of one run.
        cost: how many runs' worth of steps may be spent in all (`horizon`).
        strategy: another strategy, in place of `horizon` at this cost.
        mode: "min" for a loss, "max" otherwise; or a whole `Objective`.
        study: folder to keep the study in; an existing one is continued.
        seed: of everything random.
        on_event: called with every new event.

    >>> tuner = Tuner(lr=(1e-4, 1e-1), steps=400, cost=1.5)
    >>> while (proposals := tuner.ask()) is not None:
    ...     for p in proposals:
    ...         steps = range(p.start + 1, p.stop + 1)
    ...         losses = [1.0 + abs(p.schedule.multipliers[-1] - 0.01) / t for t in steps]
    ...         tuner.tell(p, steps, {"averaged": losses})
    >>> bool(0.003 < tuner.result.schedule.multipliers[-1] < 0.03)
    True
    """

    def __init__(
        self,
        *,
        lr: "tuple[float, float] | LearningRateRange",
        steps: int,
        cost: float = 2.3,
        strategy: Strategy | None = None,
        mode: "str | Objective" = "min",
        study: "str | Path | None" = None,
        seed: int = 0,
        on_event: "Callable[[Event], None] | None" = None,
    ) -> None:
        self.strategy = horizon(cost) if strategy is None else strategy
        wanted = mode if isinstance(mode, Objective) else Objective(mode)  # pyright: ignore[reportArgumentType]
        self.goal = Goal(LearningRateRange.of(lr), steps, self.strategy.objective(wanted), seed)
        self.total_steps = self.strategy.total_steps(self.goal)
        self.history = History(self.goal)
        self._open: dict[int, Proposal] = {}
        self._handed: set[int] = set()
        self._finished: Finished | None = None
        self._advice = ""
        self._warned = False
        self._on_event = on_event
        self.seconds = 0.0
        self._journal = self._opened(Path(study), seed) if study is not None else None
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Go on where the journal stops, or begin it."""
        if self._journal is not None and self._journal.events:
            self._replay(list(self._journal.events))
        else:
            self._write(Created(self._settings()))
        if not self._open and self._finished is None:
            self._decide()

    def ask(self) -> list[Proposal] | None:
        """Proposals not handed out yet; an empty list while it waits for reports; None when the study is over."""
        if self._finished is not None:
            return None
        fresh = [p for fork, p in self._open.items() if fork not in self._handed]
        self._handed.update(p.fork for p in fresh)
        return fresh

    def tell(self, proposal: Proposal, steps: Sequence[int], values: Values) -> None:
        """Report what a proposal observed: steps in (start, stop], and a value for each; raw, averaged or both."""
        at, columns = self._checked(proposal, steps, values)
        first_bad = next((i for i in range(len(at)) if not all(np.isfinite(c[i]) for c in columns.values())), None)
        if first_bad is not None:
            self._report_failure(proposal, f"the value at step {at[first_bad]} is not finite", at, columns)
            return
        self._record(Observed(proposal.fork, proposal.start, proposal.stop, at, columns))

    def fail(self, proposal: Proposal, reason: str, steps: Sequence[int] = (), values: Values = ()) -> None:
        """Report that a proposal could not be finished, with what was observed until then."""
        at, columns = self._checked(proposal, steps, values) if len(steps) else ((), {})
        self._report_failure(proposal, reason, at, columns)

    @property
    def result(self) -> Result:
        """What was found; an error before the study is over."""
        end = self._finished
        if end is None:
            raise InputError(
                f"the study is not over, {len(self._open)} proposals are open: ask and tell until ask() is None"
            )
        if end.fork is None:
            return Result(None, None, None, end.of, self.history, self._advice)
        fork = self._fork(end.fork)
        return Result(fork.schedule, end.value, fork.id, end.of, self.history)

    def close(self) -> None:
        """Release the study folder."""
        if self._journal is not None:
            self._journal.close()

    # reports

    def _checked(
        self, proposal: Proposal, steps: Sequence[int], values: Values
    ) -> tuple[tuple[int, ...], dict[str, tuple[float, ...]]]:
        if self._open.get(proposal.fork) != proposal:
            raise InputError(f"fork {proposal.fork} has no open proposal like this: report each proposal of ask() once")
        at = tuple(int(step) for step in steps)
        named = dict(values) if isinstance(values, Mapping) else {"raw": values}
        columns = {of: tuple(float(v) for v in column) for of, column in named.items()}
        if not at or not columns:
            raise InputError(
                f"fork {proposal.fork} reported nothing between steps {proposal.start} and {proposal.stop}: "
                "observe at least once per interval (Objective.every), or call fail()"
            )
        if any(len(column) != len(at) for column in columns.values()) or set(columns) - {"raw", "averaged"}:
            raise InputError(
                'expected one value per step under "raw" or "averaged", got columns of other lengths or names'
            )
        before = proposal.start if proposal.start else -1  # a run may be observed before its first step
        if any(b <= a for a, b in pairwise((before, *at))) or at[-1] > proposal.stop:
            raise InputError(f"steps must increase within ({proposal.start}, {proposal.stop}], got {at[0]}..{at[-1]}")
        return at, columns

    def _report_failure(
        self, p: Proposal, reason: str, at: tuple[int, ...], columns: dict[str, tuple[float, ...]]
    ) -> None:
        self._record(Failed(p.fork, p.start, at[-1] if at else p.start, reason, at, columns))

    def _record(self, event: "Observed | Failed") -> None:
        self._write(event)
        self._apply_report(event)
        if not self._open:
            self._decide()

    def _apply_report(self, event: "Observed | Failed") -> None:
        """Put what was observed into the history."""
        proposal = self._open.pop(event.fork)
        self._handed.discard(event.fork)
        fork = self._fork(event.fork)
        steps, values = np.array(event.steps, dtype=int), np.array(self._read(event.values))
        failed = isinstance(event, Failed)
        if failed:
            finite = (
                int(np.argmin(np.isfinite(values))) if len(values) and not np.isfinite(values).all() else len(values)
            )
            steps = np.append(
                steps[:finite], max(event.step, int(steps[finite - 1]) + 1 if finite else proposal.start + 1)
            )
            values = np.append(values[:finite], np.nan)
        self.history = self.history.with_fork(
            replace(
                fork,
                trace=self._grown(fork, steps, values, failed=failed),
                last={of: column[-1] for of, column in event.values.items() if column},
                alive=not failed,
                failure=event.reason if isinstance(event, Failed) else "",
            )
        )

    def _read(self, values: dict[str, tuple[float, ...]]) -> tuple[float, ...]:
        """The column the strategy wants, or the other one."""
        wanted = self.goal.objective.of
        if wanted in values or not values:
            return values.get(wanted, ())
        if not self._warned:
            self._warned = True
            message = (
                f"no {wanted} values were reported: using {next(iter(values))} ones, which says less about the end"
            )
            warnings.warn(message, stacklevel=4)
        return next(iter(values.values()))

    def _grown(self, fork: Fork, steps: np.ndarray, values: np.ndarray, *, failed: bool) -> Trace | None:
        if fork.trace is not None:
            return replace(
                fork.trace,
                steps=np.concatenate([fork.trace.steps, steps]),
                values=np.concatenate([fork.trace.values, values]),
                schedule=fork.schedule,
                failed=failed,
            )
        parent = self._fork(fork.parent).trace if fork.parent is not None else None
        at = min(fork.start, parent.last_step) if parent is not None else 0
        name, objective = str(fork.id), self.goal.objective
        return Trace(steps, values, fork.schedule, parent, at, name=name, objective=objective, failed=failed)

    def _fork(self, number: int) -> Fork:
        return next(fork for fork in self.history.forks if fork.id == number)

    # decisions

    def _decide(self) -> None:
        began = time.perf_counter()
        decision = self.strategy.propose(self.history)
        seconds = time.perf_counter() - began
        self.seconds += seconds
        step = decision.proposals[0].start if decision.proposals else self.goal.steps
        count = len(decision.proposals)
        details = {**decision.details, "proposals": count}
        self._write(Decided(self.history.round + 1, step, decision.reasons, details, seconds))
        for event in self._consequences(decision, step):
            self._write(event)
            self._apply(event)

    def _consequences(self, decision: Decision, step: int) -> list[Event]:
        """The events that follow from a decision, in order."""
        events: list[Event] = [Dropped(fork, step, reason) for fork, reason in decision.drops]
        for p in decision.proposals:
            if p.parent is not None:
                events.append(Cloned(p.fork, p.parent, p.start))
            events.append(Proposed(p.fork, p.parent, p.start, p.stop, p.schedule, p.round))
        if not decision.proposals:
            of, value = self.goal.objective.of, None
            if decision.winner is not None:  # raw or averaged weights, whichever ended better
                sign, last = self.goal.objective.sign, self._fork(decision.winner).last
                of, value = max(last.items(), key=lambda item: sign * item[1])
            events.append(Finished(decision.winner, self.goal.steps, value, of))
        return events

    def _apply(self, event: Event) -> None:
        match event:
            case Dropped():
                self.history = self.history.with_fork(replace(self._fork(event.fork), alive=False))
            case Proposed():
                p = Proposal(event.fork, event.parent, event.start, event.stop, event.schedule, event.round)
                known = {fork.id for fork in self.history.forks}
                fork = self._fork(p.fork) if p.fork in known else Fork(p.fork, p.parent, p.start, p.schedule)
                self.history = replace(self.history.with_fork(replace(fork, schedule=p.schedule)), round=p.round)
                self._open[p.fork] = p
            case Finished():
                self._finished = event
            case Decided():
                self._advice = event.reasons[0] if event.reasons else ""
            case Observed() | Failed():
                self._apply_report(event)
            case _:
                pass

    # the journal

    def _write(self, event: Event) -> None:
        if self._journal is not None:
            self._journal.append(event)
        if isinstance(event, Decided):
            self._apply(event)
        if self._on_event is not None:
            self._on_event(event)

    def _settings(self) -> dict[str, Any]:
        goal = self.goal
        return {
            "lr": [goal.lr_range.low, goal.lr_range.high],
            "steps": goal.steps,
            "mode": goal.objective.mode,
            "total_steps": self.total_steps,
            "seed": goal.seed,
            "strategy": self.strategy.to_json(),
        }

    def _opened(self, folder: Path, seed: int) -> Journal:
        journal = Journal(folder)
        try:
            if (folder / "study.json").exists():
                known, mine = read_settings(folder)["settings"], _as_read(self._settings())
                changed = sorted(key for key in {*known, *mine} if known.get(key) != mine.get(key))
                if changed:
                    raise InputError(
                        f"{folder} is a study with other settings ({', '.join(changed)}): "
                        "pass the same ones to continue it, or choose another folder"
                    )
            else:
                write_settings(folder, self._settings(), seed)
        except Exception:
            journal.close()
            raise
        return journal

    def _replay(self, events: list[Event]) -> None:
        """Rebuild the state; finish a decision whose events were cut off."""
        last = max((i for i, event in enumerate(events) if isinstance(event, Decided)), default=None)
        whole = events if last is None else events[:last]
        for event in whole:
            self._apply(event)
        if last is None:
            return
        decided, after = events[last], events[last + 1 :]
        assert isinstance(decided, Decided)
        self._apply(decided)
        expected = int(decided.details.get("proposals", 0))
        done = sum(isinstance(event, Proposed) for event in after)
        if (expected and done == expected) or any(isinstance(event, Finished) for event in after):
            for event in after:
                self._apply(event)
            return
        again = self._consequences(self.strategy.propose(self.history), decided.step)
        if list(again[: len(after)]) != list(after):
            raise JournalError(
                "the journal does not agree with the decision it follows from: it was edited, restore it"
            )
        for i, event in enumerate(again):
            if i >= len(after):
                self._write(event)
            self._apply(event)


def _as_read(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as they come back from JSON."""
    return json.loads(json.dumps(settings))


def tune(
    training: "Callable[[], Training]",
    *,
    steps: int,
    lr: "tuple[float, float] | LearningRateRange",
    cost: float = 2.3,
    strategy: Strategy | None = None,
    mode: "str | Objective" = "min",
    study: "str | Path | None" = None,
    seed: int = 0,
    on_event: "Callable[[Event], None] | None" = None,
) -> Result:
    """Tune the learning rate of one training run.

    Args:
        training: builds one run: a `TorchTraining`, or anything with advance, state_dict and load_state_dict.
        steps: length of the run.
        lr: lower and upper bound of the rate.
        cost: total steps of all forks, in units of one run.
        strategy: another strategy, in place of `horizon` at this cost.
        mode: "min" for a loss, "max" otherwise; or a whole `Objective`.
        study: folder to keep the study in; an existing one is continued. A temporary one by default.
        seed: of everything random.
        on_event: called with every new event.
    """
    runner = Local(training)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="paceline-"))) if study is None else Path(study)
        tuner = Tuner(
            lr=lr, steps=steps, cost=cost, strategy=strategy, mode=mode, study=folder, seed=seed, on_event=on_event
        )
        stack.callback(tuner.close)
        while (proposals := tuner.ask()) is not None:
            _run_round(tuner, runner, folder, proposals)
        result = _with_state(tuner.result, folder)
        return replace(result, state=load_checkpoint(result.state)) if study is None else result  # pyright: ignore


def _run_round(tuner: Tuner, runner: Runner, folder: Path, proposals: list[Proposal]) -> None:
    """Run open proposals and report on each; a checkpoint goes when nothing open begins from it."""
    if any(p.start == 0 for p in proposals):
        runner.prepare(checkpoint_path(folder, 0, 0))
    begun = {_origin(p) for p in proposals} | ({(0, 0)} if tuner.strategy.restarts else set[tuple[int, int]]())
    reported = {(fork.id, int(fork.schedule.change_points[-1])) for fork in tuner.history.alive}
    _keep_only(folder, {checkpoint_path(folder, *at) for at in begun | reported})
    waiting = {p.fork: p for p in proposals}
    for report in runner.run([_task(folder, p, tuner.goal.seed) for p in proposals]):
        p = waiting.pop(report.fork)
        if report.failure:
            tuner.fail(p, report.failure, report.steps, report.values)
            continue
        tuner.tell(p, report.steps, report.values)
        if p.start > 0 and _origin(p) not in {_origin(q) for q in waiting.values()}:
            checkpoint_path(folder, *_origin(p)).unlink(missing_ok=True)


def _origin(p: Proposal) -> tuple[int, int]:
    """Fork and step of the checkpoint a proposal begins from."""
    if p.start == 0:
        return 0, 0
    return (p.fork if p.parent is None else p.parent), p.start


def _task(folder: Path, p: Proposal, seed: int) -> Task:
    cloned = p.parent is not None
    fresh = int(np.random.SeedSequence([seed, p.fork, p.start]).generate_state(1)[0]) if cloned else None
    target = checkpoint_path(folder, p.fork, p.stop)
    return Task(p.fork, checkpoint_path(folder, *_origin(p)), target, p.stop, p.schedule, fresh)


def _keep_only(folder: Path, needed: set[Path]) -> None:
    """Delete checkpoints that nothing can begin from any more, and torn ones."""
    for path in (folder / "checkpoints").glob("*"):
        if path not in needed:
            path.unlink(missing_ok=True)


def _with_state(result: Result, folder: Path) -> Result:
    if result.fork is None or result.schedule is None:
        reasons = sorted({fork.failure for fork in result.history.forks if fork.failure})
        raise TrainingError(
            f"{result.advice}; what the forks said: {'; '.join(reasons)}; the study is kept in {folder}"
        )
    path = checkpoint_path(folder, result.fork, int(result.schedule.change_points[-1]))
    _keep_only(folder, {path})
    return replace(result, state=path)
