"""How much work goes into one decision about schedules: draws, rates tried, gradient steps."""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.settings.fields import check_fields, document_fields, setting


@document_fields
@dataclass(frozen=True, slots=True)
class SearchBudget:
    """How hard to search for the schedule with the best quantile of its final value.

    The rates of the intervals are searched one after the other, in sweeps, and then moved together by gradient steps.
    """

    draws: int = setting(48, "Draws of each schedule that is tried.", at_least=1)
    grid: int = setting(7, "Rates of an interval that are tried at once.", at_least=1)
    sweeps: int = setting(2, "Sweeps over all intervals.", at_least=0)
    gradient_steps: int = setting(20, "Gradient steps of all rates together, after the sweeps.", at_least=0)

    def __post_init__(self) -> None:
        check_fields(self)


@document_fields
@dataclass(frozen=True, slots=True)
class InfillBudget:
    """How hard to search for the next run of a family.

    Many candidates of each task are ranked by a criterion that needs no draws. The best of them are moved by the
    gradient of the expected variance from few draws, and then compared with many draws.

    The defaults come from docs/research.md, "A family of tasks": 48 x 4 draws rank candidates like ten times as many.
    """

    candidates: int = setting(128, "Candidates of each task that are ranked without draws.", at_least=1)
    starts: int = setting(2, "Candidates of each task that are moved by the gradient.", at_least=1)
    gradient_steps: int = setting(6, "Gradient steps of these.", at_least=0)
    rough_draws: int = setting(8, "Draws of a candidate while it is moved.", at_least=2)
    outer_draws: int = setting(48, "Draws of a candidate in the last comparison.", at_least=2)
    inner_draws: int = setting(4, "Draws of each reference run, given a draw of the candidate.", at_least=4)

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("rough_draws", "outer_draws", "inner_draws"):
            if getattr(self, name) % 2:
                raise InputError(f"{name} come in opposite pairs, got {getattr(self, name)}: pass an even number")
        if self.candidates < self.starts:
            raise InputError(
                f"starts are chosen among the candidates, got {self.starts} starts of {self.candidates} candidates: "
                "raise candidates"
            )
