"""One round on a cluster: every fork's interval is run once to its end, whoever dies on the way.

An interval begins from a checkpoint and sees nothing else, so that it may be run again, or twice at once, and comes to
the same values. A worker that dies puts its interval back into the queue; one that is far slower than the others gets a
second worker beside it, and the first to finish counts.
"""

import time
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

import ray as _ray
from ray.exceptions import ObjectLostError, RayError, RayTaskError

from paceline.errors import TrainingError
from paceline.runner.ray.errors import argument_lost, in_words, own_error
from paceline.runner.ray.jobs import Attempt, Job, Pace, Second
from paceline.runner.ray.pool import Member, Pool
from paceline.runner.ray.states import States
from paceline.runner.stopwatch import Stopwatch
from paceline.study import Failure, Report

ray: Any = _ray
CRASHES = 3  # of an interval, on nodes that live on, until it has failed
LONE = 20.0  # seconds without any worker until the user hears of it
TICK = 0.5  # seconds between looks at who is slow


class Round:
    """Runs jobs on a pool.

    Args:
        jobs: what is to be run.
        pool: who runs it.
        states: where states are.
        pace: what counts as slow.
        tell: told (fork, step) as steps are seen.
        stopwatch: counts the time spent waiting.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        pool: Pool,
        states: States,
        *,
        pace: Pace,
        tell: Callable[[int, int], None],
        stopwatch: Stopwatch,
    ) -> None:
        self.pool, self.states, self.pace = pool, states, pace
        self._tell, self._stopwatch = tell, stopwatch
        self._queue = list(jobs)
        self._open = len(self._queue)
        self._running: dict[Any, Attempt] = {}
        self._saving: dict[Any, tuple[Job, Report]] = {}
        self._busy = time.monotonic()  # when anybody was last at work

    def reports(self) -> Generator[Report]:
        """Run all of them, each report when its state is safe."""
        self.pool.shrink(self._open, [job.origin for job in self._queue if job.origin is not None])
        while self._open:
            self._dispatch()
            self._help_the_slow()
            self._warn_if_alone()
            for ready in self._wait():
                report = self._heard(ready)
                if report is not None:
                    self._open -= 1
                    self._dispatch()  # nobody need wait while the study writes this down
                    yield report

    def abandon(self) -> None:
        """Let go of the workers that are still at it."""
        for attempt in self._running.values():
            self.pool.dismiss(attempt.member)
        self._running.clear()

    # handing out

    def _dispatch(self) -> None:
        """Give intervals to workers that are there, to those that hold their state first; ask for as many as queue."""
        holding = {member.holds for member in self.pool.idle}
        self._queue.sort(key=lambda job: (job.origin not in holding, job.is_clone))  # a clone's parent holds it too
        while self._queue and (member := self.pool.take(self._queue[0].origin)) is not None:
            self._begin(self._queue.pop(0), member)
        for _ in range(len(self._queue) - len(self.pool.starting)):
            self.pool.request()

    def _begin(self, job: Job, member: Member) -> None:
        origin = job.origin
        state = self.states.get(origin) if origin is not None and origin != member.holds else None
        stream = member.actor.run.options(num_returns="streaming").remote(job.interval, job.target, state, job.task)
        member.holds = None
        self._running[stream] = Attempt(job, member, time.monotonic())

    def _help_the_slow(self) -> None:
        """Give a second worker to intervals that take far too long, where none waits for a first."""
        now = time.monotonic()
        for attempt in [] if self._queue else list(self._running.values()):
            job, node = attempt.job, attempt.member.node
            if job.interval is None or job.second is Second.BEGUN:
                continue
            if self.pace.allows(now - attempt.began, job.interval.stop - job.interval.start):
                continue
            member = self.pool.take(job.origin, other_than=node)
            if member is not None:
                job.second = Second.BEGUN
                self._begin(job, member)
            elif job.second is Second.NONE:
                job.second = Second.REQUESTED
                self.pool.request(other_than=node)

    def _warn_if_alone(self) -> None:
        """Say once what a fork needs, where no worker has come for a while."""
        if self._running or self._saving:
            self._busy = time.monotonic()
        elif time.monotonic() - self._busy > LONE:
            self._busy = float("inf")
            cluster = self.pool.cluster
            warnings.warn(
                f"no worker has come for {LONE:.0f} s: a fork needs {cluster.needs}, the cluster has "
                f"{cluster.in_words()}; waiting for room, lower cpus= or gpus= if it never comes",
                stacklevel=2,
            )

    # hearing back

    def _wait(self) -> list[Any]:
        """What has something to say: streams, workers that have come, states that are safe."""
        asked = [*self._running, *self.pool.starting, *self._saving]
        with self._stopwatch.on("checkpoint" if self._saving and not self._running else "training"):
            # states must stay where they are: nothing is fetched to this node
            ready, _ = ray.wait(asked, num_returns=1, timeout=TICK, fetch_local=False)
            if ready:  # and whoever else has: a talkative fork must not hold up the others
                ready, _ = ray.wait(asked, num_returns=len(asked), timeout=0, fetch_local=False)
        return ready

    def _heard(self, ready: Any) -> Report | None:
        """Take in one thing; a report where it was the last of its interval."""
        if ready in self.pool.starting:
            self.pool.arrived(ready)
        elif ready in self._saving:
            return self._saved(ready)
        elif ready in self._running:  # another attempt may have ended it just now
            return self._streamed(ready)
        return None

    def _streamed(self, stream: Any) -> Report | None:
        attempt = self._running[stream]
        try:
            ref = next(stream)
            if attempt.report is not None:
                return self._trained(attempt, attempt.report, ref)
            said = ray.get(ref)
        except (RayError, StopIteration) as error:
            del self._running[stream]
            return self._lost(attempt, error)
        if not isinstance(said, Report):
            self._say(attempt.job, said)
            return None
        self._say(attempt.job, said.steps)
        attempt.report = said
        return self._trained(attempt, said, None) if said.failure is not None else None

    def _say(self, job: Job, steps: Iterable[int]) -> None:
        """Tell steps, each once, also where an interval is run again."""
        for step in steps:
            if job.interval is not None and step > job.told:
                job.told = step
                self._tell(job.interval.fork, step)

    def _trained(self, attempt: Attempt, report: Report, state: Any) -> Report | None:
        """The first attempt to end counts, and the others stop; a state must be safe before its report counts."""
        job, member = attempt.job, attempt.member
        self._stop(job, but=member)
        self.pool.idle.append(member)
        if report.failure:
            return report
        if job.interval is not None:
            self.pace.note(time.monotonic() - attempt.began, job.interval.stop - job.interval.start)
            member.holds = job.target
        saving = self.states.keep(job.target, state)
        if saving is None:
            return report
        self._saving[saving] = (job, report)
        return None

    def _saved(self, saving: Any) -> Report | None:
        job, report = self._saving.pop(saving)
        try:
            ray.get(saving)
        except RayError as error:
            if not argument_lost(error):
                reason = TrainingError(f"the checkpoint {job.target} could not be written: {in_words(error)}")
                raise own_error(error) or reason from None
            self.states.lose(job.target)  # its worker or its node went before it could be written
            return self._again(job, error, crashed=not isinstance(error, ObjectLostError))
        return report

    def _lost(self, attempt: Attempt, error: Exception) -> Report | None:
        """An attempt came to nothing."""
        job, member = attempt.job, attempt.member
        if argument_lost(error):  # the worker is fine: what it should begin from is gone
            self.pool.idle.append(member)
            if job.origin is not None:
                self.states.lose(job.origin)
            return self._again(job, error, crashed=not isinstance(error, ObjectLostError))
        if isinstance(error, RayTaskError):
            raise own_error(error) or error from None
        self.pool.dismiss(member)
        return self._again(job, error, crashed=self.pool.cluster.is_alive(member.node))  # nodes leave through no fault

    def _again(self, job: Job, error: Exception, *, crashed: bool) -> Report | None:
        """Back into the queue, unless another is at it or it has crashed too often."""
        job.crashes += crashed
        if job.crashes >= CRASHES:
            self._stop(job)
            fork, start = (job.interval.fork, job.interval.start) if job.interval is not None else (job.task, 0)
            message = f"{CRASHES} workers died during this interval: {in_words(error)}"
            return Report(fork, start, start, (), {}, Failure("lost", message))
        if job not in [other.job for other in self._running.values()]:
            self._queue.append(job)
        return None

    def _stop(self, job: Job, but: Member | None = None) -> None:
        """Nobody works at a job any longer, and all of them go but one."""
        for stream in [stream for stream, attempt in self._running.items() if attempt.job is job]:
            member = self._running.pop(stream).member
            if member is not but:
                self.pool.dismiss(member)
