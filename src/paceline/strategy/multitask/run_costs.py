"""What the runs of tasks cost: what is left of a budget, which tasks it still pays for, and where to begin."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.settings import FamilySettings

RUNS_PER_TASK = 2  # of the initial design
SMALL_BUDGET = 3  # runs per task: with less, the initial design has one run of each
INITIAL_SHARE = 0.5  # of the budget, at most, for the initial design if tasks differ in cost
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

    def first_tasks(self, tasks: Sequence[str]) -> tuple[list[str], int]:
        """The tasks that the study begins with, and how many runs of each.

        If they differ in cost, the cheapest ones as long as that takes no more than half of the budget. The others are
        known by their coordinates, and get a run when one teaches most.
        """
        costs, budget = {task: self.of(task) for task in tasks}, self.settings.budget
        if len(set(costs.values())) <= 1:
            enough = budget >= SMALL_BUDGET * sum(costs.values())
            return list(tasks), RUNS_PER_TASK if enough else 1
        first, spent = list[str](), 0.0
        for task in sorted(tasks, key=lambda task: costs[task]):
            spent += RUNS_PER_TASK * costs[task]
            if spent <= INITIAL_SHARE * budget:
                first.append(task)
        cheapest = min(tasks, key=lambda task: costs[task])
        return ([task for task in tasks if task in first], RUNS_PER_TASK) if first else ([cheapest], 1)
