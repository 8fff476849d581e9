"""What users may set, each setting written once: it becomes a keyword of a function and an option of a command.

Nothing heavy is imported here, so that `paceline tasks --help` does not wait for torch.
"""

from paceline.settings.family_settings import DONE_BY_0_1_0, FamilySettings
from paceline.settings.fields import check_fields, show_settings, with_changes
from paceline.settings.new_task_settings import NewTaskSettings
from paceline.settings.search_budget import InfillBudget, SearchBudget

__all__ = [
    "DONE_BY_0_1_0",
    "FamilySettings",
    "InfillBudget",
    "NewTaskSettings",
    "SearchBudget",
    "check_fields",
    "show_settings",
    "with_changes",
]
