"""What the runs of tasks cost: what is left of a budget, which tasks it still pays for, and where to begin."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.settings import FamilySettings

RUNS_PER_TASK = 2  # of the initial design
SMALL_BUDGET = 3  # runs per task: with less, the initial design has one run of each
INITIAL_SHARE = 0.5  # of the budget, at most, for the initial design if tasks differ in cost
MOST_FIRST_RUNS = 10  # of a task, if tasks differ in cost
ROUNDING = 1e-9  # of the budget


@dataclass(frozen=True, slots=True)
class RunCosts:
    """Costs of runs, in the unit of the budget. Every run costs 1 if none are given.

    Args:
        settings: of the family.
    """

    settings: FamilySettings

    def of(self, task: str) -> float:
        """The cost of a run of a task."""
        return 1 if self.settings.costs is None else self.settings.costs[task]

    def left_after(self, runs: Sequence[str]) -> float:
        """What is left of the budget after runs of these tasks; as good as nothing is 0."""
        left = self.settings.budget - sum(self.of(task) for task in runs)
        return left if abs(left) > ROUNDING * self.settings.budget else 0

    def affordable(self, tasks: Sequence[str], left: float) -> list[str]:
        """The tasks a run of which is still paid for."""
        return [task for task in tasks if self.of(task) <= left + ROUNDING * self.settings.budget]

    def most_runs(self, tasks: Sequence[str], left: float) -> int:
        """How many runs of the cheapest of these tasks are still paid for."""
        return int(left / min(self.of(task) for task in tasks) * (1 + ROUNDING))

    def fewest_runs(self, tasks: Sequence[str], left: float) -> int:
        """How many runs of any of these tasks are still paid for."""
        return int(left / max(self.of(task) for task in tasks) * (1 + ROUNDING))

    def first_runs(self, tasks: Sequence[str]) -> dict[str, int]:
        """How many runs of each task the study begins with.

        If tasks differ in cost, these are runs of the cheaper ones. Half of the budget is divided evenly among as many
        tasks as get two runs of it. The others are known by their coordinates, and get a run when one teaches most.
        """
        costs, budget = {task: self.of(task) for task in tasks}, self.settings.budget
        if len(set(costs.values())) <= 1:
            enough = budget >= SMALL_BUDGET * sum(costs.values())
            return dict.fromkeys(tasks, RUNS_PER_TASK if enough else 1)
        cheapest = sorted(tasks, key=lambda task: costs[task])
        for count in range(len(tasks), 0, -1):
            part = INITIAL_SHARE * budget / count
            if RUNS_PER_TASK * costs[cheapest[count - 1]] <= part:
                first = cheapest[:count]
                return {task: min(MOST_FIRST_RUNS, int(part / costs[task])) for task in tasks if task in first}
        return {cheapest[0]: 1}
