"""What `tune` says while it runs in a Python program: lines through the logger `paceline`, and a bar.

A program that has set up logging gets the lines where its other lines go. Elsewhere they are printed to stderr, and a
terminal or a notebook shows a bar too.
"""

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import ceil
from pathlib import Path

from rich.console import Console

from paceline.safe_text import safe_text
from paceline.study import Decided, Event, Finished, Interval, Report, StudyState
from paceline.views.data import StudyView
from paceline.views.format import describe_spent, format_cost, format_duration, format_progress
from paceline.views.progress_bar import Bar, has_room_for_bar, progress_bar
from paceline.views.projection import study_view
from paceline.views.text import describe_result, event_lines, make_console

logger = logging.getLogger("paceline")
SECOND = 2  # decision: the first interval of all forks is over
LARGE_SHARE, USUAL_SHARE = 0.2, 0.1  # of the time for evaluation: what is worth a hint, and what the hint leads to


def _say(text: str) -> None:
    """One line, and no other: text of a study cannot add a line of its own to a log."""
    logger.info(safe_text(text))


class Messages:
    """Turns the events of a study into log lines, and steps into the movement of a bar.

    Args:
        folder: the study's folder; None if it is temporary.
        past: events of a study that is continued.
        console: where the bar is drawn; None draws none.
    """

    def __init__(self, folder: Path | None, past: Sequence[Event], console: Console | None) -> None:
        self._folder, self._console = folder, console
        self._state = StudyState.of(past)
        self._starts = {event.fork: event.start for event in past if isinstance(event, Interval)}
        self._steps: dict[int, int] = {}  # of open intervals
        self._done = sum(event.stop - event.start for event in past if isinstance(event, Report))
        self._bar: Bar | None = None
        self._observations: int | None = None  # how many are expected
        if past:
            _say(self._continued(study_view(self._state)))

    def on_event(self, event: Event) -> None:
        """Log decisions, failures and the end."""
        self._state.append(event)
        match event:
            case Interval():
                self._starts[event.fork] = event.start
            case Report():
                self._done += event.stop - event.start
                self._steps.pop(event.fork, None)
                if event.failure is not None:
                    self._log_lines(event)
            case Decided():
                if event.round == 1:
                    _say(self._beginning(study_view(self._state), event.details.get("proposals", 1)))
                self._log_lines(event)
                if event.round == 2:
                    self._correct_expected(study_view(self._state))
            case Finished():
                self.close()
                view = study_view(self._state)
                if "training" in view.spent:
                    _say(f"time: {describe_spent(view.spent)}")
                _say(str(describe_result(view, self._folder or Path())[0]))
            case _:
                pass

    def on_expected(self, training: float, evaluation: float, observations: int) -> None:
        """Say how long the study is expected to take: seconds of training, and of so many evaluations."""
        self._observations = observations
        share = evaluation / (training + evaluation)
        smaller = ceil(evaluation / training * (1 - USUAL_SHARE) / USUAL_SHARE)
        hint = f"; a set {smaller} times smaller takes {100 * USUAL_SHARE:.0f} %" if share > LARGE_SHARE else ""
        _say(f"about {format_duration(training + evaluation)} expected, {100 * share:.0f} % of it for evaluation{hint}")

    def _correct_expected(self, view: StudyView) -> None:
        """Say it again after the first interval of all forks, from the time that it took."""
        spent, more = view.spent, view.total_steps / max(view.done_steps, 1)
        observed = sum(len(report.steps) for report in self._state.events if isinstance(report, Report))
        if not observed or "training" not in spent:
            return
        training = more * (spent["training"] + spent.get("loading", 0.0))
        evaluations = more if self._observations is None else self._observations / observed  # there are more at first
        expected, over = training + evaluations * spent.get("evaluation", 0.0), sum(spent.values())
        _say(f"after {format_duration(over)}: about {format_duration(max(expected, over))} expected in all")

    def on_step(self, fork: int, step: int) -> None:
        """Move the bar."""
        if self._console is None:
            return
        total = self._state.settings["total_steps"]
        if self._bar is None:
            self._bar = progress_bar(self._console, self._done, total)
        self._steps[fork] = step - self._starts.get(fork, 0)
        done = self._done + sum(self._steps.values())
        self._bar.move(done, f"{done:,} of {total:,} steps")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
        self._bar = self._console = None

    def _log_lines(self, event: Event) -> None:
        for line in event_lines(event, study_view(self._state)):
            _say(line)

    def _beginning(self, view: StudyView, runs: int) -> str:
        low, high = view.settings["lr"]
        what = f"{len(view.tasks)} tasks" if view.tasks else "one run" if runs == 1 else f"{runs} forks at first"
        where = f"in {self._folder}" if self._folder else "in a temporary folder (study= keeps it)"
        return f"{what}, rates from {low:g} to {high:g}; {format_cost(view.total_steps, view.steps)}; {where}"

    def _continued(self, view: StudyView) -> str:
        if view.finished is not None:
            held = describe_result(view, self._folder or Path())[0]
            return f"{self._folder} is finished, nothing was run: {held}; choose another folder to tune again"
        return f"{self._folder} goes on: {format_progress(view)} were done before"


class _ConsoleHandler(logging.Handler):
    """Prints lines to a console, above a bar that is drawn on it."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        self._console.print(self.format(record), soft_wrap=True)


@contextmanager
def study_messages(folder: Path | None, past: Sequence[Event]) -> Generator[Messages]:
    """What reports on a study until the block is left."""
    console, level = make_console(stderr=True), logger.level
    handler = None if logger.hasHandlers() else _ConsoleHandler(console)
    if level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    if handler is not None:
        handler.setFormatter(logging.Formatter("paceline: %(message)s"))
        logger.addHandler(handler)
    draws = handler is not None and logger.isEnabledFor(logging.INFO) and has_room_for_bar(console)
    reporting = Messages(folder, past, console if draws else None)
    try:
        yield reporting
    finally:
        reporting.close()
        if handler is not None:
            logger.removeHandler(handler)
        logger.setLevel(level)
