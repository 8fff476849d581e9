"""The settings of a family of tasks, which `tune_tasks`, `MultiTask`, `Family` and `paceline tasks` share."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from paceline.settings.fields import check_fields, document_fields, setting
from paceline.settings.search_budget import InfillBudget, SearchBudget
from paceline.settings.task_settings import check_budget, check_costs, check_wanted

if TYPE_CHECKING:
    from paceline.model import Link
    from paceline.shapes import Shape
    from paceline.traces import Coordinates, Transform, Weights


# what families of 0.1.0 did: their journals lack these settings, and so do those that do the same
DONE_BY_0_1_0: dict[str, Any] = {
    "alpha_grows": False,
    "end_share": 1.0,
    "at": None,
    "costs": None,
    "wanted": None,
}


@document_fields
@dataclass(frozen=True, slots=True)
class FamilySettings:
    """How the schedules of a family of tasks are tuned.

    The defaults of `alpha`, `answer_alpha`, `order`, `summed_rate`, `end_share` and `link` come from docs/research.md,
    "A family of tasks".
    """

    intervals: int = setting(5, "Intervals of a schedule: one rate on each.", at_least=1, option=int)
    initial: int | None = setting(
        None,
        "First runs, by design.",
        at_least=0,
        option=int,
        default_text="two for each task without known runs, or one if the budget is less than three for each",
    )
    budget: float = setting(
        20,
        "Runs in all, the first ones included; with costs, what they may cost in all. Known runs cost nothing.",
        option=float,
    )
    costs: "Mapping[str, float] | None" = setting(
        None,
        "Cost of a run of each task, in any unit: seconds, or shares of the most expensive one. The next run is then "
        "the one that teaches most for its cost, and the budget is in the same unit.",
        default_text="1 for each",
    )
    wanted: "Sequence[str] | None" = setting(
        None,
        "Tasks whose schedules are wanted. Runs of the others are made if they teach about these.",
        default_text="all tasks",
    )
    at: "Coordinates | None" = setting(
        None,
        "Known coordinates of each task by name, such as {'half': {'rows': 30_000}}: whatever is numeric and says in "
        "what tasks differ. All tasks have the same ones.",
        default_text="none",
    )
    batch: int = setting(
        1, "Runs at once. Each is chosen as if those before it had gone as expected.", at_least=1, option=int
    )
    base: "str | Shape" = setting(
        "constant",
        "constant tunes a rate for each interval. A shape (horizon, linear, cosine, ...) tunes multipliers of it; "
        "horizon is the shape that `tune` uses.",
        option=str,
    )
    alpha: float = setting(
        0.8,
        "Quantile of the final value that the optimistic schedules maximise. Higher explores more.",
        inside=(0, 1),
        option=float,
    )
    alpha_grows: bool = setting(
        False,
        "Whether that quantile grows: 1 - (1 - alpha) / t after t runs for each task, as proofs for such searches "
        "ask. The paper keeps it constant.",
        option=bool,
    )
    answer_alpha: float = setting(
        0.3,
        "Quantile of the final value that the answers maximise. 0.5 is risk-neutral, less is careful.",
        inside=(0, 1),
        option=float,
    )
    infill: str = setting(
        "variance",
        "variance makes the run that reduces the uncertainty about the best schedules most, as in the paper. "
        "optimistic runs an optimistic schedule of each task in turn, which is decided in a fraction of the time.",
        choices=("variance", "optimistic"),
        option=str,
    )
    weights: "Weights | None" = setting(
        None,
        "Weights that are judged.",
        choices=("raw", "averaged"),
        option=str,
        default_text="raw, or averaged if there is a base",
    )
    dims: int = setting(2, "Dimensions of the task embedding.", at_least=0, option=int)
    link: "str | Link" = setting(
        "signed",
        "Link of the trace model, as in `TraceModel.fit`; your own after `paceline.model.register_link(YourLink)`.",
        option=str,
    )
    order: int = setting(2, "How many intervals back the trace model looks.", choices=(1, 2, 3), option=int)
    summed_rate: bool = setting(True, "Whether the trace model also sees the sum of the rates so far.", option=bool)
    end_share: float = setting(
        0.3,
        "Share of each interval, at its end, whose observations the trace model is fitted to. Runs drop and settle "
        "within long intervals, so a line through all of them misses where they end. 1 takes all.",
        is_share=True,
        option=float,
    )
    transform: "Transform" = setting(
        "log",
        "Scale of the trace model. log is for losses: it becomes identity with mode max, or if one is not positive.",
        choices=("log", "identity"),
        option=str,
    )
    max_failures: int = setting(
        3, "Failed runs after which a task is given up, if none has reached the end.", at_least=1, option=int
    )
    search: SearchBudget = setting(SearchBudget(), "How hard to search for the best schedules.")
    infill_search: InfillBudget = setting(InfillBudget(), "How hard to search for the next run.")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.costs is not None:
            object.__setattr__(self, "costs", check_costs(self.costs))
        object.__setattr__(self, "budget", check_budget(self.budget, self.costs))
        if self.wanted is not None:
            object.__setattr__(self, "wanted", check_wanted(self.wanted))
        if self.at is not None:
            from paceline.traces import check_coordinates

            object.__setattr__(self, "at", check_coordinates(self.at))

    @property
    def base_shape(self) -> "Shape":
        """The base as a shape."""
        from paceline.shapes import HOLD_THEN_DECAY, shape_of

        return HOLD_THEN_DECAY if self.base == "horizon" else shape_of(self.base)

    @property
    def judged_weights(self) -> "Weights":
        """The weights whose values are modelled."""
        from paceline.shapes import Constant

        return self.weights or ("raw" if isinstance(self.base_shape, Constant) else "averaged")

    def alpha_after(self, runs: int, tasks: int) -> float:
        """The order of the optimistic quantile after so many runs of so many tasks."""
        # alpha_t = 1 - (1 - alpha) / t  (Kaufmann et al. 2012, without their factor log(n)^-c)
        return 1 - (1 - self.alpha) / max(1.0, runs / tasks) if self.alpha_grows else self.alpha

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the settings that 0.1.0 did not have if they are what it did."""
        from paceline.model import registered_name

        fields = {n: value for n, value in asdict(self).items() if n not in DONE_BY_0_1_0 or value != DONE_BY_0_1_0[n]}
        return {
            **fields,
            "base": self.base_shape.to_json(),
            "weights": self.judged_weights,
            "link": self.link if isinstance(self.link, str) else registered_name(self.link),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "FamilySettings":
        """The settings that `to_json` wrote."""
        from paceline.shapes import shape_from_json

        parts: dict[str, Any] = {
            "base": shape_from_json(data["base"]),
            "search": SearchBudget(**data["search"]),
            "infill_search": InfillBudget(**data["infill_search"]),
        }
        return cls(**{**DONE_BY_0_1_0, **data, **parts})
