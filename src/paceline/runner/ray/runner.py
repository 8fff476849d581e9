"""Forks on a cluster: one Ray actor per fork at a time, with the resources that the user states.

The study stays on this machine's file system; what it decides does not depend on who trained what, how often, or where.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InputError, TrainingError
from paceline.runner.base import Factories, Runner
from paceline.runner.ray.cluster import Cluster, Needs
from paceline.runner.ray.jobs import Job, Pace
from paceline.runner.ray.pool import Pool
from paceline.runner.ray.round import Round
from paceline.runner.ray.states import States
from paceline.runner.ray.storage import Storage, checked_url, study_storage
from paceline.study import Interval, Report
from paceline.study.wording import describe_failure


@dataclass(frozen=True)
class Site:
    """What a study uses of a cluster."""

    cluster: Cluster
    pool: Pool
    states: States


class Ray(Runner):
    """Trains intervals on a Ray cluster, as many at once as there is room for; the others queue.

    Args:
        make_training: builds one run, called once per worker; or one function for each task of a family.
        cpus: CPUs that one fork needs; a fraction shares one.
        gpus: GPUs that one fork needs; a fraction shares one, None needs none.
        address: of the cluster, as `ray.init` takes it; None is RAY_ADDRESS, a cluster that runs on this machine, or a
            new one that ends with the study. Where ray is initialised already, that cluster is used.
        storage: folder on a mount that all nodes share, or a URL that fsspec knows, to keep checkpoints in; None keeps
            them in the study's folder.
        patience: an interval that takes this many times what others took, per step, is given to a second worker too.
    """

    reads_storage = True

    def __init__(
        self,
        make_training: Factories,
        *,
        cpus: float = 1.0,
        gpus: float | None = None,
        address: str | None = None,
        storage: str | None = None,
        patience: float = 4.0,
    ) -> None:
        super().__init__()
        if not patience > 1:
            raise InputError(f"patience must be more than 1, got {patience}: 4 waits for four times the usual time")
        self._make_training, self._needs, self._address = make_training, Needs(cpus, gpus), address
        self._url = checked_url(storage) if storage is not None else None
        self._pace = Pace(patience)
        self._storage: Storage | None = None
        self._folder: Path | None = None
        self._site: Site | None = None
        self._going: Round | None = None

    @property
    def workers(self) -> int:
        """How many are there between rounds."""
        return len(self._site.pool.idle) if self._site is not None else 0

    def prepare(self, task: int = 0) -> None:
        """Have a worker make the state of the untrained run: this machine may lack what a training needs."""
        start = self.checkpoints.path(task, 0)
        if self._joined().states.has(start):
            return
        for report in self._round([Job(None, None, start, task)]):
            if report.failure is not None:
                raise TrainingError(f"the untrained run could not be kept: {describe_failure(report.failure)}")

    def run(self, intervals: Sequence[Interval]) -> Iterator[Report]:
        """Train all intervals, side by side."""
        if intervals:
            yield from self._round(
                [Job(i, self.checkpoints.origin(i), self.checkpoints.target(i), i.task) for i in intervals]
            )

    def _round(self, jobs: list[Job]) -> Generator[Report]:
        site = self._joined()
        self._going = Round(jobs, site.pool, site.states, pace=self._pace, tell=self.on_step, stopwatch=self.stopwatch)
        try:
            yield from self._going.reports()
        finally:
            self._end_round()

    def _end_round(self) -> None:
        """Let go of workers that are still at it, where a study stops inside a round."""
        if self._going is not None:
            self._going.abandon()
        self._going = None

    def keep_only(self, needed: set[Path]) -> None:
        """Delete all other checkpoints, here and in the storage."""
        super().keep_only(needed)
        if self._site is not None:
            self._site.states.keep_only(needed)
        storage = self._study_storage()
        if storage is not None:
            storage.keep_only({path.name for path in needed if not path.exists()})

    def fetch(self, path: Path) -> None:
        """Copy a checkpoint from the storage into the study's folder, without loading it."""
        storage = self._study_storage()
        if storage is not None and not path.exists():
            storage.fetch(path.name, path)

    def close(self) -> None:
        """Let all workers go, and the cluster too if it was started here."""
        self._end_round()  # a study that stops may keep its last round alive, in a traceback
        if self._site is not None:
            self._site.pool.close()
            self._site.states.close()
            self._site.cluster.leave()
            self._site = None

    def _study_storage(self) -> Storage | None:
        """The storage of the study, if it has one."""
        folder = self.checkpoints.folder
        if self._folder != folder:
            self._folder, self._storage = folder, study_storage(self._url, folder.parent)
        return self._storage

    def _joined(self) -> Site:
        """The cluster, joined when it is first needed: a study that is over needs none."""
        storage = self._study_storage()
        if self._site is None:
            cluster = Cluster(self._address, self._needs)
            try:
                self._site = Site(
                    cluster, Pool(cluster, self._make_training, storage, self.seed), States(cluster, storage)
                )
            except BaseException:
                cluster.leave()
                raise
        return self._site
