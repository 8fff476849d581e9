"""The settings of a run of a new task, which `warm_start` and `NewTask` share."""

from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError
from paceline.settings.fields import check_fields, document_fields, setting
from paceline.settings.search_budget import SearchBudget


@document_fields
@dataclass(frozen=True, slots=True)
class NewTaskSettings:
    """How a run of a new task of a known family is tuned.

    The default of `alphas` comes from docs/research.md, "A new task beyond its family".
    """

    probe: int = setting(
        0,
        "Steps at the beginning, rounded up to whole intervals, whose rates are chosen to learn where the task lies.",
        at_least=0,
    )
    method: str = setting(
        "dynamic",
        "dynamic plans the rest of the run anew at each change point. probe plans it once, after the probe. "
        "universal runs what is best on average over the tasks there may be.",
        choices=("universal", "probe", "dynamic"),
    )
    location: str = setting(
        "posterior",
        "posterior integrates over where the task may lie; point takes the most probable location.",
        choices=("posterior", "point"),
    )
    prior: str = setting(
        "gaussian",
        "Where the task may lie before its first step: gaussian around the known tasks, or their convex hull.",
        choices=("gaussian", "hull"),
    )
    forks: int = setting(1, "Runs side by side, after the probe. Only dynamic has several.", at_least=1)
    alphas: tuple[float, float] = setting(
        (0.4, 0.3),
        "Quantile of the final value that is maximised, at the first decision and at the last. A plan that is made "
        "once takes the second.",
    )
    statistic: str = setting(
        "quantile",
        "What is maximised of the final value: the quantile, or the mean, as in the paper's universal schedule.",
        choices=("quantile", "mean"),
    )
    cold_start: bool = setting(
        True,
        "Whether to begin with the range test of a cold start, and to go on as one if the family's rates do not suit "
        "the task. The test takes 5 % of the steps in addition. Without it, or with a probe, the family is followed in "
        "any case, as in the paper.",
    )
    locations: int = setting(48, "Locations of the task that are tried at a decision.", at_least=1)
    models: int = setting(8, "Of these, how many a plan averages over.", at_least=1)
    search: SearchBudget = setting(
        SearchBudget(draws=24, gradient_steps=15), "How hard to search for the best schedule under each model."
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.method == "probe" and self.probe == 0:
            raise InputError('method="probe" needs a probe, got probe=0: pass its length in steps')
        if self.forks > 1 and self.statistic == "mean":
            raise InputError(
                f'several forks differ in their quantile, got {self.forks} and statistic="mean": pass forks=1'
            )
        if self.forks > 1 and self.method != "dynamic":
            raise InputError(f'several forks need method="dynamic", got {self.forks} and {self.method!r}: pass forks=1')
        if len(self.alphas) != 2 or not all(0 < alpha < 1 for alpha in self.alphas):
            raise InputError(f"alphas must be two quantiles in (0, 1), first and last, got {self.alphas}")

    @classmethod
    def universal(cls, *, measure: str = "hull", statistic: str = "mean", **changes: Any) -> "NewTaskSettings":
        """The universal schedule; by default the paper's, with the best mean over the convex hull of the known tasks.

        >>> NewTaskSettings.universal().method
        'universal'

        Args:
            measure: where the task may lie, as in `prior`.
            statistic: "mean" or "quantile".
            changes: other settings.
        """
        settings: dict[str, Any] = {"cold_start": False, **changes}
        return cls(method="universal", prior=measure, statistic=statistic, **settings)
