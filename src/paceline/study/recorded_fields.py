"""What the open parts of a journal hold: settings, details of decisions, and reasons.

They are dictionaries, because a strategy of your own may add to them. What our own code reads of them must have the
types below. The rest may be any plain data, not too deep.
"""

from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

from paceline.errors import InputError
from paceline.json_fields import (
    MAX_COUNT,
    MAX_NAME,
    MAX_WHOLE,
    Check,
    FieldError,
    Name,
    Range,
    checks_of,
    plain_data,
    record,
)
from paceline.traces import Schedule

Number = float | None  # one that was not finite is null
Rate = Annotated[float, Range(1e-300, 1e300)]
Positive = Annotated[float, Range(1e-300, 1e300)]
MAX_TASKS = 100_000


# settings


class NamedSettings(TypedDict):
    """Settings of something with a name: the base, for one."""

    name: Name


class StrategySettings(TypedDict, total=False):
    """Those settings of a strategy that views read."""

    strategy: Name
    base: NamedSettings
    weights: Name
    judge_by: Name | None
    known: dict[str, str]
    budget: Positive
    costs: dict[str, Positive]
    wanted: list[Name]
    at: dict[str, dict[str, float]]


class KnownRuns(TypedDict, total=False):
    """The runs of other studies that a study began with."""

    runs: int
    digest: Name


class StudySettings(TypedDict, total=False):
    """Settings of a study."""

    tasks: Annotated[list[Annotated[str, Range(1, MAX_NAME)]], Range(0, MAX_TASKS)]
    known: KnownRuns
    lr: Annotated[list[Rate], Range(2, 2)]
    steps: Annotated[int, Range(1, MAX_COUNT)]
    total_steps: int
    mode: Literal["min", "max"]
    seed: Annotated[int, Range(-MAX_WHOLE, MAX_WHOLE)]
    strategy: StrategySettings
    keep: Literal["best", "last"]
    early_stop: bool


# details of a decision


class RankedFork(TypedDict):
    """A fork and its value."""

    fork: int
    value: NotRequired[Number]


class BestOfTask(RankedFork):
    """The best run of a task."""

    task: Name


class ForecastRow(TypedDict):
    """The forecast of an interval."""

    fork: int
    weights: NotRequired[Name]
    steps: list[int]
    low: list[Number]
    median: list[Number]
    high: list[Number]


class FailureRow(TypedDict):
    """P(fail) over the rates that a clone may get."""

    fork: NotRequired[int]
    rates: list[Number]
    probability: list[Number]


class CandidateRow(TypedDict):
    """The rates that a clone may get."""

    fork: NotRequired[int]


class LatentGrid(TypedDict):
    """Mean and deviation of a latent function."""

    mean: list[list[Number]]
    deviation: list[list[Number]]


class SurfaceDetails(TypedDict):
    """A model over a grid of values and rates."""

    values: list[Number]
    rates: list[Number]
    latents: list[LatentGrid]
    p_fail: NotRequired[list[list[Number]]]


class TaskLocation(TypedDict):
    """Where a model places a task."""

    task: Name
    at: list[Number]


class LocationDetails(TypedDict):
    """Where a new task may lie."""

    mean: list[Number]
    covariance: list[list[Number]]
    samples: list[list[Number]]
    weights: list[Number]


class AnswerRow(TypedDict):
    """The answer for a task."""

    task: Name
    schedule: Schedule
    median: Number
    low: Number
    high: Number
    runs: int
    failed: int


class DecisionDetails(TypedDict, total=False):
    """Details of a decision."""

    proposals: int
    ranking: list[RankedFork]
    forecast: list[ForecastRow]
    candidates: list[CandidateRow]
    p_fail: list[FailureRow]
    surface: SurfaceDetails
    best: list[BestOfTask]
    embedding: list[TaskLocation]
    location: LocationDetails
    answers: list[AnswerRow]


# reasons


class RunDesign(TypedDict, total=False):
    """A run of the first design."""

    fork: int
    task: Name
    rates: list[Number]
    multipliers: bool


class Rival(TypedDict):
    """What a run of another task would teach."""

    task: Name
    variance: Number


class BestStateRow(TypedDict):
    """The best state that is left."""

    fork: int
    step: int
    value: Number


class ReasonFields(TypedDict, total=False):
    """Fields of our own kinds of reasons. A name means the same in all of them, or allows both."""

    why: dict[str, Any]
    instead: dict[str, Any]
    text: str
    task: Name
    nearest: Name
    edge: Name
    cause: Literal["first value", "rates", "errors"]
    fork: int
    parent: int
    clone: int
    step: int
    start: int
    stop: int
    steps: int
    saved: int
    tries: int
    failed: int
    first: int
    total: int
    candidates: int
    multipliers: bool
    limited: bool
    rates: list[Number]
    ranking: list[RankedFork]
    rivals: list[Rival]
    best_state: BestStateRow | None
    rate: Number
    value: Number
    best: Number
    best_value: Number
    factor: Number
    probability: Number
    otherwise: Number
    alpha: Number
    limit: Number
    forecast: Number
    now: Number
    low: Number
    high: Number
    noise: Number
    progress: Number
    share: Number
    before: Number
    after: Number
    distance: Number
    spread: Number
    cost: Number


_settings_record, _details_record, _design = record(StudySettings), record(DecisionDetails), record(RunDesign)


def read_settings_fields(data: Any) -> dict[str, Any]:
    """The settings of a study, checked."""
    settings = _settings_record(data)
    low, high = settings.get("lr", (0.0, 1.0))
    if not low < high:
        raise FieldError("two rates that increase", settings["lr"], ("lr",))
    tasks: list[str] = settings.get("tasks", [])
    if len(set(tasks)) < len(tasks):
        raise FieldError("names that differ", tasks, ("tasks",))
    plain_data(settings)
    return settings


def read_details(data: Any) -> dict[str, Any]:
    """The details of a decision, checked."""
    try:
        return _details_record(data)
    except InputError as error:  # an answer's schedule says what is wrong with it, and not where it lies
        raise error if isinstance(error, FieldError) else FieldError(f"sound ({error})", "the details") from error


def reason_check(kind: str, name: str) -> Check:
    """The check of a field of a reason: for our own kinds by its name; others may hold any plain data."""
    if kind not in _own_kinds():
        return plain_data
    return _keep_whole(_read_runs if name == "runs" else checks_of(ReasonFields).get(name, plain_data))


def _keep_whole(check: Check) -> Check:
    """The check, without turning whole numbers into others: `best` may be a value or a fork."""

    def check_and_keep(value: Any) -> Any:
        checked = check(value)
        return value if type(value) is int else checked

    return check_and_keep


@cache
def _own_kinds() -> frozenset[str]:
    from paceline.study.wording import SENTENCES  # imports this module

    return frozenset(SENTENCES)


def _read_runs(value: Any) -> Any:
    """Runs are counted, or listed with their rates."""
    if type(value) is list:
        return [_design(each) for each in cast("list[Any]", value)]
    if type(value) is int and 0 <= value <= MAX_COUNT:
        return value
    raise FieldError("a whole number or a list of runs", value)
