"""Algorithm 2: first runs by design, then one or several at a time where they teach most, then an answer for each task.

Settings without state: everything is a function of the runs made so far (`Trace` with its task) and of those under way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model import Link, Normals, TraceModel, few_threads, link_of
from paceline.strategy.multitask.infill import Choice, Effort, next_run
from paceline.strategy.multitask.optimistic import best_schedules
from paceline.strategy.multitask.reading import readable
from paceline.strategy.multitask.space import Run, Space, first_runs
from paceline.strategy.prospect import Prospect
from paceline.traces import Schedule, Trace


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The schedule for a task, and the final values it is expected to reach, in the user's units.

    Args:
        schedule: what to run.
        quantiles: final value at alpha 0.05, 0.5 and 0.95 on the scale of improvement: careful, median, optimistic.
    """

    schedule: Schedule
    quantiles: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Family:
    """Multi-task tuning.

    Args:
        space: the schedules searched.
        tasks: names of the tasks that are tuned.
        initial: N_0, first runs by Latin hypercube; by default two for each task.
        alpha: quantile of the optimistic set.
        answer_alpha: quantile of the answers: 0.5 risk-neutral, less to be careful; the best of many schedules tends
            to be one that the model thinks too much of.
        dims: L, dimensions of the task embedding.
        link, order, progress: as in `TraceModel.fit`.
        infill: "variance" runs what teaches most about the optimistic set (the paper's criterion); "optimistic" runs
            the set itself and the best schedules by the median, tasks in turn, in a fraction of the time.
        seed: of everything drawn.
        effort: how hard to search.
        others: tasks that are known by runs made before, and inform these; nothing is proposed or answered for them.
    """

    space: Space
    tasks: tuple[str, ...]
    initial: int | None = None
    alpha: float = 0.8
    answer_alpha: float = 0.3
    dims: int = 2
    link: "str | Link" = "signed"
    order: int = 2
    progress: bool = True
    infill: str = "variance"
    seed: int = 0
    effort: Effort = field(default_factory=Effort)
    others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = (*self.tasks, *self.others)
        if len(set(names)) != len(names) or not self.tasks:
            raise InputError(f"tasks must be at least one different name, got {list(names)}: rename them")
        for name in ("alpha", "answer_alpha"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} must lie in (0, 1), got {getattr(self, name)}")
        if self.infill not in ("variance", "optimistic"):
            raise InputError(f'infill must be "variance" or "optimistic", got {self.infill!r}')

    def first(self) -> tuple[Run, ...]:
        """The runs to begin with."""
        return first_runs(self.space, self.tasks, self.initial or 2 * len(self.tasks), self.seed)

    def fit(self, traces: Sequence[Trace]) -> TraceModel:
        """The trace model of the runs so far, cut and scaled as the space says; failed ones stood still."""
        names = (*self.tasks, *self.others)
        unknown = {trace.task for trace in traces} - set(names)
        if unknown:
            raise InputError(f"expected runs of the tasks {list(names)}, got {sorted(unknown)}: name their task")
        model = TraceModel.fit(
            readable(traces, self.space, signed=link_of(self.link).signed),
            intervals=self.space.change_points,
            link=self.link,
            order=self.order,
            summed_rate=self.progress,
            tasks=self.dims,
            lr=self.space.lr_range,
        )
        for task in names:  # one without runs yet: at the centre of the prior
            if task not in model.encoder.tasks:
                model = model.with_task(task, np.zeros(self.dims))
        return model

    def propose(
        self,
        model: TraceModel,
        made: Sequence[Trace],
        *,
        under_way: Sequence[Run] = (),
        count: int = 1,
        among: "Sequence[str] | None" = None,
    ) -> tuple[Choice, ...]:
        """The next runs, each as if those before it, and those under way, had gone as expected; `among` these tasks."""
        numbers = [model.encoder.tasks.index(task) for task in among or self.tasks]
        for run in under_way:
            model = self.fantasy(model, run)
        choices, turns = list[Choice](), Counter([*(trace.task for trace in made), *(run.task for run in under_way)])
        for i in range(count):
            generator = torch.Generator().manual_seed(self.seed + 1000 * (len(made) + len(under_way) + i) + 1)
            starts = self._run_before(model, made, len(numbers))
            task = None if self.infill == "variance" else min(among or self.tasks, key=lambda task: turns[task])
            choices.append(
                next_run(
                    model,
                    self.space,
                    # a task's own schedule: every second one optimistic, the others as good as is believed now
                    alpha=0.5 if task and turns[task] % 2 == 0 else self.alpha,
                    effort=self.effort,
                    starts=starts,
                    generator=generator,
                    tasks=numbers,
                    of=task,
                )
            )
            turns[choices[-1].run.task] += 1
            model = self.fantasy(model, choices[-1].run)
        return tuple(choices)

    def fantasy(self, model: TraceModel, run: Run) -> TraceModel:
        """The model as if a run had followed the path of its latents' means."""
        task = torch.tensor(model.encoder.tasks.index(run.task))
        x = torch.tensor(run.x, dtype=torch.float64)
        normals = Normals.none(model.link.latents, self.space.intervals)
        with torch.no_grad(), few_threads():
            return model.condition_on(model.draw_new(x, task, normals, self.space.lengths(model)))

    def answers(self, model: TraceModel, made: Sequence[Trace], *, alpha: float | None = None) -> dict[str, Answer]:
        """The best schedule for each task, with what it is expected to reach."""
        lengths, order = self.space.lengths(model), alpha or self.answer_alpha
        generator = torch.Generator().manual_seed(self.seed)
        numbers = [model.encoder.tasks.index(task) for task in self.tasks]
        with few_threads():
            x = best_schedules(
                model,
                order,
                lengths,
                starts=self._run_before(model, made, len(numbers)),
                draws=2 * self.effort.draws,
                grid=self.effort.grid,
                sweeps=self.effort.sweeps + 1,
                moves=self.effort.climbs,
                generator=generator,
                tasks=numbers,
            )
            normals = Normals.of(model.link.latents, 1000, self.space.intervals, generator)
            with torch.no_grad():
                finals = Prospect(model, torch.tensor(numbers), lengths, normals).finals(x)
        levels = torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64)
        users = model.encoder.to_user(torch.quantile(finals, levels, dim=1).T)
        return {
            task: Answer(self.space.schedule(x[m]), (float(low), float(middle), float(high)))
            for m, (task, (low, middle, high)) in enumerate(zip(self.tasks, users, strict=True))
        }

    def _run_before(
        self, model: TraceModel, made: Sequence[Trace], tasks: int
    ) -> "Float[Tensor, 'starts tasks intervals'] | None":
        """The schedule of each task's best run so far, as a start for every task."""
        best = dict[str, Trace]()
        sign = model.encoder.segmenter.objective.sign
        for trace in made:
            whole = not trace.failed and trace.last_step >= self.space.change_points[-2]
            if whole and (trace.task not in best or sign * trace.last_value > sign * best[trace.task].last_value):
                best[trace.task] = trace
        if not best:
            return None
        x = torch.tensor(np.array([self.space.x_of(t.schedule) for t in best.values()]), dtype=torch.float64)
        return x.clamp(0, 1)[:, None].expand(-1, tasks, -1)
