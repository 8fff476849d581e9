"""Algorithm 2: runs by an initial design, then one or several at a time where they teach most, then the answers.

A family holds settings and no state. Everything is a function of the runs so far (`Trace` with its task) and of those
under way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from paceline.errors import InputError
from paceline.model import Normals, TraceModel, few_threads, link_of
from paceline.settings import FamilySettings
from paceline.strategy.base import Goal
from paceline.strategy.future_runs import FutureRuns, task_numbers
from paceline.strategy.multitask.best_schedules import best_schedules
from paceline.strategy.multitask.infill import InfillChoice, next_run
from paceline.strategy.multitask.preprocess_runs import preprocess_runs
from paceline.strategy.multitask.run_costs import RUNS_PER_TASK, RunCosts
from paceline.strategy.multitask.safe_rates import SafeRates
from paceline.strategy.multitask.space import Run, Space, initial_runs
from paceline.traces import Schedule, Trace

RISK = 0.5  # a run is made to learn from it, so it should rather reach its end than fail
ANSWER_DRAWS = 1000  # of the final value that an answer promises
ANSWER_QUANTILES = (0.05, 0.5, 0.95)


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

    There is one order of tasks: that of `goal.tasks`, followed by `known_tasks`. The model numbers tasks in an order of
    its own, which nobody else uses.

    Args:
        goal: bounds, length, seed and the names of the tasks that are tuned.
        settings: how they are tuned; `budget` and `batch` are left to the caller.
        known_tasks: tasks of runs that were made before and inform these. Nothing is proposed or answered for them.
    """

    goal: Goal
    settings: FamilySettings = field(default_factory=FamilySettings)
    known_tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.all_tasks)) != len(self.all_tasks) or not self.tasks:
            raise InputError(f"tasks must be at least one different name, got {list(self.all_tasks)}: rename them")
        link_of(self.settings.link)  # a missing one is refused before anything is run
        self._check_named_tasks()

    def _check_named_tasks(self) -> None:
        """Refuse settings that do not name the tasks that they must, before anything is run."""
        settings = self.settings
        if settings.at is not None and (missing := [task for task in self.all_tasks if task not in settings.at]):
            raise InputError(f"at must have coordinates of every task, got none of {missing}: add them")
        if settings.costs is not None and set(settings.costs) != set(self.tasks):
            raise InputError(
                f"costs must have a cost for each of the tasks {list(self.tasks)}, got {list(settings.costs)}: name "
                "each of them, and no others"
            )
        if unknown := sorted(set(settings.wanted or ()) - set(self.tasks)):
            raise InputError(f"wanted must be among the tasks {list(self.tasks)}, got {unknown}: rename them")

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that are tuned."""
        return self.goal.tasks

    @property
    def all_tasks(self) -> tuple[str, ...]:
        """These, and then the tasks of known runs."""
        return (*self.goal.tasks, *self.known_tasks)

    @property
    def space(self) -> Space:
        """The schedules searched."""
        return Space(self.goal.lr_range, self.goal.steps, self.settings.intervals, self.settings.base_shape)

    def within_safe_rates(self, runs: Sequence[Run], traces: Sequence[Trace]) -> tuple[Run, ...]:
        """Runs of the initial design, drawn together so that all of them lie within the safe rates of their tasks."""
        highest = self.highest_rates(traces, [run.task for run in runs], min(self.settings.alpha, RISK))
        return tuple(
            Run(run.task, tuple(float(top) * x for x in run.x)) for run, top in zip(runs, highest, strict=True)
        )

    def initial_runs(self) -> tuple[Run, ...]:
        """The runs to begin with."""
        count = self.settings.initial or RUNS_PER_TASK * len(self.tasks)
        return initial_runs(self.space, self.tasks, count, self.goal.seed)

    def fit(self, traces: Sequence[Trace]) -> TraceModel:
        """The trace model of the runs so far, cut and scaled as the space says; failed runs count as flat."""
        unknown = {trace.task for trace in traces} - set(self.all_tasks)
        if unknown:
            raise InputError(
                f"expected runs of the tasks {list(self.all_tasks)}, got {sorted(unknown)}: name their task"
            )
        settings = self.settings
        model = TraceModel.fit(
            preprocess_runs(traces, self.space, signed=link_of(settings.link).signed),
            intervals=self.space.change_points,
            link=settings.link,
            order=settings.order,
            summed_rate=settings.summed_rate,
            end_share=settings.end_share,
            tasks=settings.dims,
            lr=self.space.lr_range,
            at=settings.at,
        )
        for task in self.all_tasks:  # one without runs yet: at the centre of the prior
            if task not in model.encoder.tasks:
                model = model.with_task(task, np.zeros(settings.dims))
        return model

    def propose(
        self,
        model: TraceModel,
        traces: Sequence[Trace],
        *,
        under_way: Sequence[Run] = (),
        count: int = 1,
        tasks: "Sequence[str] | None" = None,
        left: float = np.inf,
    ) -> tuple[InfillChoice, ...]:
        """The next runs of some tasks, each as if those before it, and those under way, had gone as expected.

        Args:
            model: fitted to the runs so far.
            traces: the runs so far.
            under_way: runs that are not over yet.
            count: how many runs, at most.
            tasks: names of the tasks that can be run; all by default.
            left: what they may cost in all.
        """
        settings, costs = self.settings, RunCosts(self.settings)
        alive = tuple(tasks or self.tasks)
        wanted = tuple(settings.wanted or alive)
        every = tuple(dict.fromkeys([*alive, *wanted]))
        highest = self.highest_rates(traces, every, min(settings.alpha, RISK))
        for run in under_way:
            model = self.fantasy(model, run)
        choices = list[InfillChoice]()
        runs_of = Counter([*(trace.task for trace in traces), *(run.task for run in under_way)])
        for i in range(count):
            number = len(traces) + len(under_way) + i
            affordable = costs.affordable(alive, left)
            if not affordable:
                break
            task = None
            if settings.infill == "optimistic":  # tasks in turn, by what has been spent on them
                task = min(affordable, key=lambda task: runs_of[task] * costs.of(task))
            choice = next_run(
                model,
                self.space,
                every,
                # a task's own schedule: every second one optimistic, the others as good as is believed now
                alpha=0.5 if task and runs_of[task] % 2 == 0 else settings.alpha_after(number, len(self.all_tasks)),
                search=settings.search,
                infill=settings.infill_search,
                generator=torch.Generator().manual_seed(self.goal.seed + 1000 * number + 1),
                starts=self._best_schedules_so_far(model, traces, len(every)),
                optimistic_task=task,
                highest=highest,
                wanted=wanted,
                costs={task: costs.of(task) for task in affordable},
            )
            choices.append(choice)
            runs_of[choice.run.task] += 1
            left -= costs.of(choice.run.task)
            model = self.fantasy(model, choice.run)
        return tuple(choices)

    def fantasy(self, model: TraceModel, run: Run) -> TraceModel:
        """The model as if a run had followed the path of its latents' means."""
        task = task_numbers(model, [run.task])[0]
        x = torch.tensor(run.x, dtype=torch.float64)
        normals = Normals.zeros(model.link.latents, self.space.intervals)
        with torch.no_grad(), few_threads():
            return model.condition_on(model.draw_batch(x, task, normals, self.space.lengths(model)))

    def answers(self, model: TraceModel, traces: Sequence[Trace], *, alpha: float | None = None) -> dict[str, Answer]:
        """The best schedule for each task, with the final values it is expected to reach."""
        lengths, search = self.space.lengths(model), self.settings.search
        generator = torch.Generator().manual_seed(self.goal.seed)
        alpha = alpha or self.settings.answer_alpha
        highest = self.highest_rates(traces, self.tasks, alpha)
        thorough = replace(search, draws=2 * search.draws, sweeps=search.sweeps + 1)
        with few_threads():
            x = best_schedules(
                model,
                alpha,
                lengths,
                thorough,
                generator=generator,
                tasks=self.tasks,
                starts=self._best_schedules_so_far(model, traces, len(self.tasks)),
                highest=highest,
            )
            normals = Normals.draw(model.link.latents, ANSWER_DRAWS, self.space.intervals, generator)
            with torch.no_grad():
                finals = FutureRuns.of(model, self.tasks, lengths, normals).finals(x)
        levels = torch.tensor(ANSWER_QUANTILES, dtype=torch.float64)
        quantiles = model.encoder.to_user(torch.quantile(finals, levels, dim=1).T)
        return {
            task: Answer(self.space.schedule(x[m]), (float(low), float(middle), float(high)))
            for m, (task, (low, middle, high)) in enumerate(zip(self.tasks, quantiles, strict=True))
        }

    def highest_rates(self, traces: Sequence[Trace], tasks: Sequence[str], risk: float) -> Float[Tensor, "tasks"]:
        """The highest x of each task that fails with a probability below `risk`, by these runs."""
        return SafeRates.fit(traces, self.space).highest(tasks, risk)

    def _best_schedules_so_far(
        self, model: TraceModel, traces: Sequence[Trace], tasks: int
    ) -> "Float[Tensor, 'starts tasks intervals'] | None":
        """The schedule of each task's best run so far, as a start for every task."""
        best, sign = dict[str, Trace](), model.encoder.segmenter.objective.sign
        for trace in traces:
            whole = not trace.failed and trace.last_step >= self.space.change_points[-2]
            if whole and (trace.task not in best or sign * trace.last_value > sign * best[trace.task].last_value):
                best[trace.task] = trace
        if not best:
            return None
        x = torch.tensor(np.array([self.space.x_of(t.schedule) for t in best.values()]), dtype=torch.float64)
        return x.clamp(0, 1)[:, None].expand(-1, tasks, -1)
