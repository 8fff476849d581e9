"""The figures of a study by name, for notebooks: `study.plot.lineage()`."""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.study import Study
from paceline.views.data import StudyView
from paceline.views.figures import FIGURES, Figure, recolour
from paceline.views.projection import study_view

_NEEDS = {
    "traces": "an interval that was run",
    "lineage": "a fork",
    "forecasts": 'decisions made with a model, for example by "greedy"',
    "surface": 'decisions made with a trace model, for example by "greedy"',
    "failure": "decisions made with a trace model after an interval had failed",
    "embedding": "a family of tasks, or a new task of one",
    "calibration": "forecasts, and observations after them",
}
"""What a study must have for each figure."""


@dataclass(frozen=True, slots=True)
class Plots:
    """The figures of a study, each a plotly figure: `.show()`, `.write_html("traces.html")` and so on.

    Args:
        view: the study.
    """

    view: StudyView

    @classmethod
    def of(cls, study: Study) -> "Plots":
        """The figures of a study as it is now."""
        return cls(study_view(study.events))

    def __call__(self, *, dark: bool = False) -> Figure:
        """Values of all forks, and their rates below."""
        return self.traces(dark=dark)

    def traces(self, *, dark: bool = False) -> Figure:
        """Values of all forks, and their rates below."""
        return self._figure("traces", dark)

    def lineage(self, *, dark: bool = False) -> Figure:
        """Which fork was cloned from which, and at which rates they ran."""
        return self._figure("lineage", dark)

    def forecasts(self, *, dark: bool = False) -> Figure:
        """The forecasts of the decisions, and the observations that followed."""
        return self._figure("forecasts", dark)

    def surface(self, *, dark: bool = False) -> Figure:
        """The latent functions of the model over values and rates, decision by decision."""
        return self._figure("surface", dark)

    def failure(self, *, dark: bool = False) -> Figure:
        """The probability that an interval fails."""
        return self._figure("failure", dark)

    def embedding(self, *, dark: bool = False) -> Figure:
        """The tasks of a family in the model's embedding."""
        return self._figure("embedding", dark)

    def calibration(self, *, dark: bool = False) -> Figure:
        """Whether the bands of forecasts hold the share of observations that they should."""
        return self._figure("calibration", dark)

    def _figure(self, name: str, dark: bool) -> Figure:
        figure = FIGURES[name](self.view)
        if figure is None:
            raise InputError(
                f"this study has nothing to show in {name!r}, which needs {_NEEDS[name]}: draw another figure"
            )
        return recolour(figure, dark=dark)
