"""Whether a study that is called again is called with the training that it began with.

A training whose state does not fit is refused when its state is loaded. Other changes would pass in silence: the loss,
the data, a weight decay, whose old value comes back with the state of the optimiser. A finished study does not run at
all. So what the training consisted of is kept with the study, and a warning says what has changed.
"""

from collections.abc import Sequence
from pathlib import Path

from paceline.runner import Factories, Fingerprint, Runner, by_task, fingerprint_of_factory
from paceline.study import read_training_record, write_training_record
from paceline.tuner.user_warning import warn_user


class ChangedTraining:
    """Compares the trainings of a study with those it began with, each once.

    Nothing is compared before the first report: until then a mistake in the code may be corrected.

    Args:
        folder: the study's folder.
        factories: build a training of each task.
        tasks: their names; empty if there is no family.
        has_begun: whether anything has been reported.
        is_finished: whether the study is over, so nothing is run.
    """

    def __init__(
        self, folder: Path, factories: Factories, tasks: Sequence[str], *, has_begun: bool, is_finished: bool
    ) -> None:
        self.folder, self.factories, self.is_finished = folder, by_task(factories), is_finished
        self.tasks = tuple(tasks) or ("",)
        self.record = read_training_record(folder) if has_begun else {}
        self._compared: set[int] = set()

    def compare(self, task: int, runner: Runner) -> None:
        """Warn if the training of a task has changed; keep what it consists of if that is not known yet."""
        if task in self._compared:
            return
        self._compared.add(task)
        name = self.tasks[task]
        found = fingerprint_of_factory(self.factories[task])
        found |= runner.fingerprint(task, may_build=not self.is_finished) or {}
        changes = list_changes(self.record.get(name, {}), found)
        if changes:
            of_task = f" of task {name!r}" if name else ""
            what_follows = (
                "it is finished, so nothing was run"
                if self.is_finished
                else "it goes on, and the settings of its optimiser come back with its states"
            )
            warn_user(
                f"the training{of_task} is not the one that the study in {self.folder} began with: "
                f"{'; '.join(changes)}. The study is not begun anew: {what_follows}. Choose another folder to tune "
                "the changed training"
            )
        if not self.is_finished and self.record.get(name, {}).keys() != (self.record.get(name, {}) | found).keys():
            self.record[name] = found | self.record.get(name, {})
            write_training_record(self.folder, self.record)


def list_changes(before: Fingerprint, now: Fingerprint) -> list[str]:
    """What differs, of all that is known of both.

    >>> list_changes({"training": {"weight_decay": "0.1"}}, {"training": {"weight_decay": "0.01", "nesterov": "True"}})
    ['weight_decay was 0.1, and is 0.01']
    """
    changes, codes = list[str](), list[str]()
    for group in before.keys() & now.keys():
        for name in before[group].keys() & now[group].keys():
            if before[group][name] == now[group][name]:
                continue
            if group.startswith("code"):
                codes.append(name)
            else:
                changes.append(f"{name} was {before[group][name]}, and is {now[group][name]}")
    return sorted(changes) + ([f"the code of {', '.join(sorted(codes))} has changed"] if codes else [])
