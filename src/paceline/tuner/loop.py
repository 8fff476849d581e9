"""The one loop: ask a strategy what to run, tell it what was observed, write both down.

The same object serves people who drive it by hand (`ask`, `tell`, `fail`) and runners. Nothing is kept but the journal:
opening a study again replays it and goes on where it stopped.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import InputError, JournalError, OtherSettingsError
from paceline.runner import Stopwatch
from paceline.strategy import (
    Decision,
    Goal,
    History,
    Keep,
    MultiTask,
    NewTask,
    Strategy,
    default_strategy,
    with_early_end,
)
from paceline.study import (
    Created,
    Decided,
    Event,
    Failure,
    Interval,
    Journal,
    KeepRule,
    Report,
    Study,
    StudyState,
    as_failure,
    as_reason,
    describe,
    digest_of_runs,
    read_settings,
    reading,
    save_known_runs,
    write_settings,
)
from paceline.traces import LearningRateRange, Mode, Objective, Trace
from paceline.tuner.doubtful_values import DoubtfulValues
from paceline.tuner.history import HistoryView, consequences, is_whole, same_decision
from paceline.tuner.reports import Columns, Values, check_kept, checked, unsound_value
from paceline.tuner.result import Result, remark


class Tuner:
    """Tunes one run by ask and tell, or a family of tasks.

    Args:
        lr: lower and upper bound of the rate.
        steps: length of one run.
        cost: how many runs' worth of steps may be spent in all (`horizon`).
        strategy: another strategy, in place of `horizon` at this cost.
        mode: "min" for a loss, "max" otherwise.
        study: folder to keep the study in; an existing one is continued.
        seed: of everything random.
        on_event: called with every new event.
        tasks: names of the tasks of a family, for `MultiTask`; `task_of(interval)` says which one to run.
        keep: "best" if you keep the state of a run's best moment and say so (`tell(..., kept=step)`), "last" if only
            the states at the ends of intervals are kept.
        early_stop: whether the study may end when nothing that is left can be expected to beat the best moment. It
            needs keep="best".

    >>> tuner = Tuner(lr=(1e-4, 1e-1), steps=400, cost=1.5)
    >>> while (intervals := tuner.ask()) is not None:
    ...     for interval in intervals:
    ...         steps = range(interval.start + 1, interval.stop + 1)
    ...         losses = [1.0 + abs(interval.multiplier - 0.01) / t for t in steps]
    ...         tuner.tell(interval, steps, {"averaged": losses})
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
        mode: Mode = "min",
        study: "str | Path | None" = None,
        seed: int = 0,
        on_event: "Callable[[Event], None] | None" = None,
        tasks: Sequence[str] = (),
        keep: Keep = "last",
        early_stop: bool = True,
    ) -> None:
        if strategy is not None and not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"strategy must be a Strategy, got {strategy!r}: pass Dynamic.greedy() or Dynamic.horizon() from "
                "paceline.strategy, or leave it out"
            )
        if on_event is not None and not callable(on_event):
            raise InputError(f"on_event must be called with events, got {on_event!r}: pass events.tensorboard('logs')")
        if strategy is None:
            strategy = MultiTask() if tasks else default_strategy(cost)
        if bool(tasks) != strategy.families:
            raise InputError(
                "a family of tasks needs both their names and a strategy for families, got "
                f"{f'{len(tasks)} tasks' if tasks else 'no tasks'} and {type(strategy).__name__}: "
                "pass tasks=[...] with MultiTask(), and no tasks with others"
            )
        self.strategy = strategy
        objective, stops_early = self.strategy.objective(objective_of(mode)), early_stop and keep == "best"
        self.goal = Goal(LearningRateRange.of(lr), steps, objective, seed, tuple(tasks), keep, stops_early)
        if tasks and keep == "best":
            raise InputError('a family of tasks keeps the ends of its runs, got keep="best": leave keep out')
        self.total_steps = self.strategy.total_steps(self.goal)
        self.stopwatch = Stopwatch("training", "decide", "journal", "checkpoint")
        self._state = StudyState()
        self._view = HistoryView(self.goal)
        self._spent_before: dict[str, float] = {}
        self._handed_out: set[Interval] = set()
        self._is_recorded = True  # whether the state holds what the journal does
        self._warned = False
        self._doubtful = DoubtfulValues(objective)
        self._on_event = on_event
        self._journal = self._opened(Path(study).absolute()) if study is not None else None
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def history(self) -> History:
        """Everything that was observed so far."""
        return self._view.of(self._state)

    def ask(self) -> list[Interval] | None:
        """Intervals not handed out yet; an empty list while it waits for reports; None when the study is over.

        An interval whose report could not be written is handed out again.
        """
        self._settle()
        if self._state.is_finished:
            return None
        fresh = [interval for interval in self._state.running if interval not in self._handed_out]
        self._handed_out.update(fresh)
        return fresh

    @property
    def is_finished(self) -> bool:
        """Whether the study is over."""
        return self._state.is_finished

    @property
    def has_begun(self) -> bool:
        """Whether anything has been reported."""
        return bool(self._state.report_numbers)

    @property
    def is_round_untouched(self) -> bool:
        """Whether none of the intervals that were proposed last has been reported on yet."""
        return len(self._state.running) == len(self._state.decisions[-1].intervals)

    def task_of(self, interval: Interval) -> str:
        """The name of the task that an interval is of; empty if there is no family."""
        return self.goal.tasks[interval.task] if self.goal.tasks else ""

    def keep_rule(self, interval: Interval) -> KeepRule | None:
        """What an observation of an open interval has to beat so that its state is kept; None if none is kept.

        Its `turn` says when the interval ends early.
        """
        if self.goal.keep == "last":
            return None
        rule = self._view.best_states.rule(self._state, interval)
        return replace(rule, turn=self._view.turn_rule(self._state, interval)) if self.goal.early_stop else rule

    def is_named(self, fork: int, step: int) -> bool:
        """Whether the journal names a state, by fork and step: only such states may be deleted."""
        return self._state.names(fork, step)

    @property
    def kept_states(self) -> set[tuple[int, int]]:
        """Fork and step of the best moments whose states are still needed, and of where the best fork may anneal."""
        if self.goal.keep == "last":
            return set()
        states, best = self._view.best_states.needed(self._state), self.history.best
        return states if best is None else states | {self.history.fork(best.fork).origin}

    def tell(self, interval: Interval, steps: Sequence[int], values: Values, *, kept: int | None = None) -> None:
        """Report what was observed over an interval.

        Args:
            interval: one of those that `ask` returned.
            steps: updates done at each observation, increasing, in (start, stop].
            values: a value for each, of raw weights; or a dict with "raw", "averaged" or both.
            kept: the step of the best observation, if it satisfies `keep_rule(interval)` and you kept its state.
        """
        self._settle()
        at, columns = self._checked(interval, steps, values)
        check_kept(kept, at, interval, self.keep_rule(interval))
        failure = unsound_value(at, columns) or self._view.divergence(self._state, interval, at, columns)
        if failure is not None:
            self.fail(interval, failure, at, columns, kept=kept)
            return
        self._report(interval, Report(interval.fork, interval.start, interval.stop, at, columns, kept=kept))

    def fail(
        self,
        interval: Interval,
        failure: "Failure | str",
        steps: Sequence[int] = (),
        values: Values = (),
        *,
        kept: int | None = None,
    ) -> None:
        """Report that an interval could not be finished, with what was observed until then."""
        self._settle()
        self._check_open(interval)
        at, columns = self._checked(interval, steps, values) if len(steps) else ((), {})
        check_kept(kept, at, interval, self.keep_rule(interval))
        stop = at[-1] if at else interval.start
        self._report(interval, Report(interval.fork, interval.start, stop, at, columns, as_failure(failure), kept))

    @property
    def result(self) -> Result:
        """What was found; an error before the study is over."""
        end, history = self._state.finished, self.history
        if end is None:
            count = len(self._state.running)
            raise InputError(f"the study is not over, {count} intervals are open: ask and tell until ask() is None")
        more: dict[str, Any] = {"seconds": dict(self.stopwatch.seconds), "study": self.study}
        if end.fork is None:
            return Result(None, None, None, end.weights, history, self._advice(), **more)
        fork = history.fork(end.fork)
        keeps_best = self.goal.keep == "best"
        step = end.step if keeps_best else int(fork.schedule.change_points[-1])
        last = end.last if keeps_best else end.value
        return Result(
            fork.schedule, end.value, fork.id, end.weights, history, remark(fork), step=step, last=last, **more
        )

    def _advice(self) -> str:
        """The first reason of the latest decision."""
        latest = self._state.latest_decision
        return describe(latest.reasons[0]) if latest is not None and latest.reasons else ""

    @property
    def study(self) -> Study:
        """The study so far, as it would be read from its folder: answers, best runs and traces of a family."""
        folder = Path() if self._journal is None else self._journal.path.parent
        return Study(
            folder, json.loads(json.dumps(self._settings())), tuple(e for e in self._state.events if e is not None)
        )

    @property
    def _known(self) -> tuple[Trace, ...]:
        return self.strategy.known_runs if isinstance(self.strategy, MultiTask | NewTask) else ()

    def close(self) -> None:
        """Release the study folder."""
        if self._journal is not None:
            self._journal.close()

    def _check_open(self, interval: Interval) -> None:
        if not self._state.is_open(interval):
            raise InputError(f"fork {interval.fork} has no open interval like this: report each interval of ask() once")

    def _checked(self, interval: Interval, steps: Sequence[int], values: Values) -> tuple[tuple[int, ...], Columns]:
        self._check_open(interval)
        at, columns = checked(interval, steps, values)
        wanted = self.goal.objective.weights
        if wanted not in columns and not self._warned:
            self._warned = True
            message = f"no {wanted} values were reported: using the others, which say less about the end"
            warnings.warn(message, stacklevel=3)
        return at, columns

    # events

    def _report(self, interval: Interval, report: Report) -> None:
        self._handed_out.discard(interval)
        self._record(report)
        if not self._state.is_running:
            self._doubtful.look(self._state)
            self._decide()

    def _decide(self) -> None:
        history = self.history
        with self.stopwatch.on("decide") as lap:
            decision = self._propose(history)
        step = decision.intervals[0].start if decision.intervals else _latest_step(history)
        details = {**decision.details, "proposals": len(decision.intervals)}
        reasons = tuple(map(as_reason, decision.reasons))
        decided = Decided(history.round + 1, step, reasons, details, lap.seconds, self._spent())
        self._record(decided, *consequences(history, decision, step))

    def _spent(self) -> dict[str, float]:
        """Seconds of the study so far, those of earlier processes included."""
        now, before = self.stopwatch.seconds, self._spent_before
        total = {name: before.get(name, 0.0) + now.get(name, 0.0) for name in {**before, **now}}
        return {name: round(seconds, 3) for name, seconds in total.items() if seconds > 0}

    def _propose(self, history: History) -> Decision:
        """The strategy's decision; the end if runs have turned and nothing is left that may beat their best."""
        if not self.goal.early_stop:
            return self.strategy.propose(history)
        return with_early_end(history, self.total_steps, self.strategy.propose)

    def _record(self, *events: Event) -> None:
        """Write events to the journal before anything follows from them."""
        self._is_recorded = False
        if self._journal is not None:
            with self.stopwatch.on("journal"):
                self._journal.append(*events)
        for event in events:
            self._state.append(event)
        self._is_recorded = True
        if self._on_event is not None:
            for event in events:
                self._on_event(event)

    def _settle(self) -> None:
        """Take up what an interruption or a failed write has left: what is recorded counts, and a round is decided."""
        if not self._is_recorded:
            events = [event for event in self._state.events if event is not None]
            if self._journal is not None:
                self._journal.repair()
                events = list(self._journal.events)
            self._replay(events)
        if not self._state.is_running and not self._state.is_finished:
            self._decide()

    # the journal

    def _begin(self) -> None:
        """Go on where the journal stops, or begin it."""
        if self._journal is not None and self._journal.events:
            self._replay(list(self._journal.events))
            latest = self._state.latest_decision
            self._spent_before = {} if latest is None else latest.spent
        else:
            self._record(Created(self._settings()))
        self._settle()

    def _replay(self, events: list[Event]) -> None:
        """Rebuild the state; finish a decision whose events were cut off."""
        self._state, self._view = StudyState(), HistoryView(self.goal)
        last = max((i for i, event in enumerate(events) if isinstance(event, Decided)), default=len(events) - 1)
        for event in events[: last + 1]:
            self._state.append(event)
        with reading():
            _ = self.history
        decided, after = events[last], events[last + 1 :]
        missing: list[Event] = []
        if isinstance(decided, Decided) and not is_whole(decided, after):
            with self.stopwatch.on("decide"):
                again = consequences(self.history, self._propose(self.history), decided.step)
            if not all(map(same_decision, again, after)) or len(after) > len(again):
                raise JournalError(
                    "the journal does not agree with the decision it follows from: it was edited, restore it"
                )
            missing = again[len(after) :]
        for event in after:
            self._state.append(event)
        with reading():
            _ = self.history
        self._record(*missing)

    def _opened(self, folder: Path) -> Journal:
        journal = Journal(folder)
        try:
            first = journal.events[0] if journal.events else None
            if (folder / "study.json").exists():
                self._check_settings(folder, read_settings(folder)["settings"])
            elif isinstance(first, Created):  # the journal knows them too
                self._check_settings(folder, first.settings)
            if not (folder / "study.json").exists():
                if self._known:
                    save_known_runs(folder, self._known)
                write_settings(folder, self._settings(), self.goal.seed)
        except Exception:
            journal.close()
            raise
        return journal

    def _check_settings(self, folder: Path, known: dict[str, Any]) -> None:
        self.strategy = self.strategy.as_begun(known.get("strategy", {}))
        mine = json.loads(json.dumps(self._settings()))
        changed = sorted(key for key in {*known, *mine} if known.get(key) != mine.get(key))
        if changed:
            short = [key for key in changed if isinstance(mine.get(key), int | float | str | list)]
            there, here = (", ".join(f"{key} {values.get(key)}" for key in short) for values in (known, mine))
            which = f", {there} and not {here}," if short else ""
            raise OtherSettingsError(
                f"{folder} is a study with other settings ({', '.join(changed)}): "
                f"pass the same ones to continue it{which} or choose another folder"
            )

    def _settings(self) -> dict[str, Any]:
        goal, known = self.goal, self._known
        return {
            **({"tasks": list(goal.tasks)} if goal.tasks else {}),
            **({"known": {"runs": len(known), "digest": digest_of_runs(known)}} if known else {}),
            "lr": [goal.lr_range.low, goal.lr_range.high],
            "steps": goal.steps,
            "mode": goal.objective.mode,
            "total_steps": self.total_steps,
            "seed": goal.seed,
            "strategy": self.strategy.to_json(),
            **({"keep": goal.keep, "early_stop": goal.early_stop} if goal.keep != "last" else {}),
        }


def _latest_step(history: History) -> int:
    """The step that the longest run has come to."""
    return max((fork.trace.last_step for fork in history.forks if fork.trace is not None), default=0)


def objective_of(mode: Mode | Objective) -> Objective:
    """The objective for a mode. The weights and the scale that values are judged by are the strategy's."""
    if isinstance(mode, Objective):
        raise InputError(
            f'mode must be "min" or "max", got {mode}: pass mode={mode.mode!r}. Which weights are judged, and on which '
            'scale, is set by the strategy: strategy=replace(Dynamic.horizon(), weights="raw")'
        )
    return Objective(mode)
