"""What happened: a study folder with an append-only journal, and what its events add up to."""

from paceline.study.answers import BestRun, TaskAnswer, answers_in, best_in, embedding_in
from paceline.study.best_states import BestState, BestStates, KeepRule, kept_state
from paceline.study.checkpoints import Checkpoints, state_named
from paceline.study.events import EVENTS, Created, Decided, Dropped, Event, Finished, Interval, Report, Values
from paceline.study.folders import changed_at, search_studies, studies_below
from paceline.study.fork_traces import ForkTraces, column, failure_of_values
from paceline.study.journal import Journal, read_journal
from paceline.study.journal_line import is_intact, read_line
from paceline.study.known_runs import digest_of_runs, load_known_runs, save_known_runs, with_parents
from paceline.study.reasons import Failure, Reason, as_failure, as_reason, because
from paceline.study.regular_files import open_regular_file, refuse_other_files
from paceline.study.settings import read_settings, write_settings
from paceline.study.state import DecisionState, ForkState, Head, StudyState
from paceline.study.study import Study
from paceline.study.training_record import read_training_record, write_training_record
from paceline.study.turning import TurnRule, turned_at
from paceline.study.unreadable import UNREADABLE, reading
from paceline.study.wording import describe, describe_all, describe_failure, format_number

__all__ = [
    "EVENTS",
    "UNREADABLE",
    "BestRun",
    "BestState",
    "BestStates",
    "Checkpoints",
    "Created",
    "Decided",
    "DecisionState",
    "Dropped",
    "Event",
    "Failure",
    "Finished",
    "ForkState",
    "ForkTraces",
    "Head",
    "Interval",
    "Journal",
    "KeepRule",
    "Reason",
    "Report",
    "Study",
    "StudyState",
    "TaskAnswer",
    "TurnRule",
    "Values",
    "answers_in",
    "as_failure",
    "as_reason",
    "because",
    "best_in",
    "changed_at",
    "column",
    "describe",
    "describe_all",
    "describe_failure",
    "digest_of_runs",
    "embedding_in",
    "failure_of_values",
    "format_number",
    "is_intact",
    "kept_state",
    "load_known_runs",
    "open_regular_file",
    "read_journal",
    "read_line",
    "read_settings",
    "read_training_record",
    "reading",
    "refuse_other_files",
    "save_known_runs",
    "search_studies",
    "state_named",
    "studies_below",
    "turned_at",
    "with_parents",
    "write_settings",
    "write_training_record",
]
