"""The families of `experiments.mnist`, tuned by ask and tell so that runs of several families go side by side."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments._mnist_results import ARCHIVE, BOUNDS, BUDGET, INTERVALS, MODELS
from experiments._side_by_side import PlannedRun, side_by_side
from experiments._svgp import PAIRS, STEPS, images, seed_of
from paceline import Schedule, Study, Trace, Tuner
from paceline.settings import FamilySettings
from paceline.strategy import MultiTask
from paceline.study import Interval
from paceline.traces import Objective
from paceline.tuner import with_known_runs

RUNS_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class FamilyStudy:
    """A study of the five tasks, or of four of them.

    Args:
        bounds: a key of `BOUNDS`.
        model: a key of `MODELS`.
        seed: of the study and of its runs.
        without: the task that is left out, if any.
    """

    bounds: str
    model: str
    seed: int
    without: str = ""

    @property
    def name(self) -> str:
        """Its name in the archive."""
        left_out = f"-without-{self.without.replace('/', '')}" if self.without else ""
        return f"{self.bounds}-{self.model}-{self.seed}{left_out}"

    @property
    def folder(self) -> Path:
        """Its folder."""
        return ARCHIVE.folder(self.name)

    @property
    def is_finished(self) -> bool:
        """Whether it is over."""
        return self.name in ARCHIVE and self.open().finished is not None

    def open(self) -> Study:
        """The study, to read."""
        return ARCHIVE.open(self.name)

    def known_runs(self) -> dict[str, list[Trace]]:
        """If a task is left out: the runs of the others in the family of all five. They count towards the budget."""
        if not self.without:
            return {}
        runs = dict[str, list[Trace]]()
        for trace in FamilyStudy(self.bounds, self.model, self.seed).open().traces("raw"):
            if trace.task != self.without:
                runs.setdefault(trace.task, []).append(trace)
        return runs

    def tuner(self) -> Tuner:
        """The tuner that `tune_tasks` makes of these settings."""
        known = self.known_runs()
        budget = max(1, BUDGET - sum(map(len, known.values())))
        strategy = MultiTask(FamilySettings(intervals=INTERVALS, budget=budget, **MODELS[self.model]))
        return Tuner(
            lr=BOUNDS[self.bounds],
            steps=STEPS,
            strategy=with_known_runs(strategy, known, self.folder, Objective()),
            study=self.folder,
            seed=self.seed,
            tasks=tuple(task for task in PAIRS if task != self.without),
        )


def families_without(bounds: str, model: str, seeds: Sequence[int]) -> list[FamilyStudy]:
    """The families that leave out each task in turn."""
    return [FamilyStudy(bounds, model, seed, task) for seed in seeds for task in PAIRS]


def tune_families(studies: Sequence[FamilyStudy]) -> None:
    """Tune families to their end, their runs side by side, then pack their journals."""
    tuners = {study: study.tuner() for study in studies if not study.is_finished}
    while tuners:
        began, waiting = time.perf_counter(), list[tuple[FamilyStudy, Interval]]()
        for study, tuner in list(tuners.items()):
            intervals = tuner.ask()
            if intervals is None:
                tuner.close()
                del tuners[study]
                continue
            waiting += [(study, interval) for interval in intervals]
        decided = time.perf_counter()
        for batch in batched(waiting):
            _run_batch(tuners, batch)
        timing = f"decided in {decided - began:.0f} s, ran in {time.perf_counter() - decided:.0f} s"
        print(f"{len(waiting)} runs of {len(studies)} families: {timing}", flush=True)
    ARCHIVE.pack()


def _run_batch(tuners: dict[FamilyStudy, Tuner], batch: Sequence[tuple[FamilyStudy, Interval]]) -> None:
    """Run intervals side by side and report on them."""
    runs = [planned_run(tuners[study].task_of(i), i.schedule, study.seed) for study, i in batch]
    steps, values = side_by_side(runs)
    for (study, interval), observed in zip(batch, values, strict=True):
        finite = np.isfinite(observed)
        if finite.all():
            tuners[study].tell(interval, steps.tolist(), observed.tolist())
        else:
            tuners[study].fail(interval, "the ELBO is not finite", steps[finite].tolist(), observed[finite].tolist())


def planned_run(task: str, schedule: Schedule, seed: int) -> PlannedRun:
    """A run of a task."""
    return PlannedRun(images(task), schedule, seed_of(task, seed))


def batched(items: Sequence[Any], size: int = RUNS_AT_ONCE) -> Iterator[Sequence[Any]]:
    """Parts of a sequence, in order."""
    for i in range(0, len(items), size):
        yield items[i : i + size]
