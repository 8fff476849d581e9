"""The figures of a study by name, for notebooks: `study.plot.lineage()`."""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.study import Study
from paceline.views.data import StudyView, read
from paceline.views.figures import FIGURES, Figure, style

_NEEDS = {
    "traces": "an interval that was observed",
    "lineage": "a fork",
    "forecasts": 'decisions that were made with a model, as those of "greedy"',
    "surface": 'decisions that were made with a trace model, as those of "greedy"',
    "failure": "decisions that were made with a trace model after something had failed",
    "embedding": "a family of tasks, or a new task of one",
    "calibration": "forecasts, and observations after them",
}


@dataclass(frozen=True, slots=True)
class Plots:
    """The figures of a study, each a plotly figure: `.show()`, `.write_image("traces.pdf")` and so on.

    Args:
        view: the study.
    """

    view: StudyView

    @classmethod
    def of(cls, study: Study) -> "Plots":
        """The figures of a study as it stands."""
        return cls(read(study.events))

    def __call__(self, *, dark: bool = False) -> Figure:
        """Values of all forks, and their rates below."""
        return self.traces(dark=dark)

    def traces(self, *, dark: bool = False) -> Figure:
        """Values of all forks, and their rates below."""
        return self._drawn("traces", dark)

    def lineage(self, *, dark: bool = False) -> Figure:
        """Who was cloned from whom, and at which rates."""
        return self._drawn("lineage", dark)

    def forecasts(self, *, dark: bool = False) -> Figure:
        """The forecasts that decisions were made with, and what then happened."""
        return self._drawn("forecasts", dark)

    def surface(self, *, dark: bool = False) -> Figure:
        """The latent functions of the model over values and rates, decision by decision."""
        return self._drawn("surface", dark)

    def failure(self, *, dark: bool = False) -> Figure:
        """How likely an interval is to fail."""
        return self._drawn("failure", dark)

    def embedding(self, *, dark: bool = False) -> Figure:
        """Where the model sees the tasks of a family."""
        return self._drawn("embedding", dark)

    def calibration(self, *, dark: bool = False) -> Figure:
        """Whether forecasts held what they promised."""
        return self._drawn("calibration", dark)

    def _drawn(self, name: str, dark: bool) -> Figure:
        figure = FIGURES[name](self.view)
        if figure is None:
            raise InputError(f"this study has no {name} to show: expected {_NEEDS[name]}, draw another figure")
        return style(figure, dark)
