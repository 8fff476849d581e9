"""Values that are sound, each by itself, and together show a mistake: the wrong mode, or an average that is not judged.

Each is a warning, once. The study goes on, since only the user can tell.
"""

from collections.abc import Sequence

import numpy as np

from paceline.study import Report, StudyState
from paceline.traces import Objective, is_sound
from paceline.tuner.user_warning import warn_user

MIN_LATER = 5  # observations after the first ones, of all forks together, until they say anything about the mode
MIN_MOVED = 8  # observations at which the raw value changed, and the averaged one with it, until that is no accident
CLEARLY = 0.1  # a value is clearly better by more than this share of what values usually change
AVERAGE_DIFFERS_FROM = 2  # steps: after the first update the average still is the weights


class DoubtfulValues:
    """Looks at the reports of a study, round by round.

    Args:
        objective: how values are read.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self._average_is_settled = False
        self._looked_at, self._moved = 0, 0  # reports, and observations at which both values moved as one

    def look(self, state: StudyState) -> None:
        """Warn of what the reports so far show. Call it when a round is over."""
        if len(state.decisions) == 1:
            reports = [state.report(number) for number in state.report_numbers]
            self._check_mode(sorted(reports, key=lambda report: _rate(state, report)))
        if not self._average_is_settled:
            self._check_average(state)

    def _check_mode(self, reports: Sequence[Report]) -> None:
        if not got_worse_everywhere(reports, self.objective):
            return
        other = "max" if self.objective.mode == "min" else "min"
        better = "larger" if other == "max" else "smaller"
        warn_user(
            f"no value became clearly better than the first one, at any rate: if {better} values are better, start a "
            f'new study with mode="{other}"; if not, lower the bounds of the rate, or check what is trained'
        )

    def _check_average(self, state: StudyState) -> None:
        for number in state.report_numbers[self._looked_at :]:
            found = moves_with_average(state.report(number))
            if found is None:
                self._average_is_settled = True
                return
            self._moved += found
        self._looked_at = len(state.report_numbers)
        if self._moved >= MIN_MOVED:
            self._average_is_settled = True
            warn_user(
                "raw and averaged weights have had the same value at each observation, so the averaged weights were "
                "probably never judged: have evaluate(model) use the model that it is given, or pass average=None. As "
                "long as both are equal, the raw weights are returned"
            )


def got_worse_everywhere(reports: Sequence[Report], objective: Objective) -> bool:
    """Whether no fork has had a value clearly better than its first, and at least half of them ended worse.

    The lowest rate must have ended best. If it did not, training helps, and the first value was good by accident: where
    values are losses of batches, all forks have the same accidents.

    Args:
        reports: those of the first round, from the lowest rate to the highest.
        objective: how values are read.
    """
    changes = list[np.ndarray]()
    for report in reports:
        column = report.values.get(objective.weights) or next(iter(report.values.values()), ())
        values = np.array(column, dtype=float)
        values = values[is_sound(values)]
        if len(values) > 1:
            changes.append(objective.sign * (values[1:] - values[0]))
    if len(changes) < 2 or sum(map(len, changes)) < MIN_LATER:
        return False  # a range test alone ends worse: its rate rises until it does
    at_end = np.array([change[-1] for change in changes])
    clearly = CLEARLY * float(np.median(np.abs(at_end)))
    best = max(float(change.max()) for change in changes)
    is_worse = clearly > 0 and best <= clearly and float(np.mean(at_end < 0)) >= 0.5
    return is_worse and float(at_end[0]) == float(at_end.max())


def _rate(state: StudyState, report: Report) -> float:
    return state.latest_interval(state.forks[report.fork]).multiplier


def moves_with_average(report: Report) -> int | None:
    """At how many observations both values changed, and were equal; None if they differ anywhere.

    Values that do not change say nothing: an accuracy may be the same for weights that differ.
    """
    raw, averaged = (np.array(report.values.get(name, ()), dtype=float) for name in ("raw", "averaged"))
    if len(raw) != len(averaged):
        return 0
    later = np.array(report.steps) >= AVERAGE_DIFFERS_FROM
    if (raw[later] != averaged[later]).any():
        return None
    return int((np.diff(raw[later]) != 0).sum())
