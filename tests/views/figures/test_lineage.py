"""Bars, branches and crosses of forks."""

from paceline.views.figures.lineage import lineage
from paceline.views.figures.style import LIGHT
from paceline.views.projection import study_view
from tests.views.studies import STUDY, golden


def test_a_bar_has_the_number_and_the_rate_of_its_fork() -> None:
    view = study_view(golden("journal-1-greedy"))
    bars = lineage(view).data[0]
    assert sorted(set(bars.text), key=int) == [str(fork.fork) for fork in view.forks]
    rates = {rate for fork in view.forks for rate in fork.schedule.multipliers.tolist()}
    assert {fork.multiplier for fork in view.forks} <= set(bars.customdata) <= rates


def test_the_path_to_the_best_fork_is_framed_and_a_failure_has_a_cross() -> None:
    figure = lineage(study_view(STUDY))
    bars = figure.data[0]
    framed = [text for text, colour in zip(bars.text, bars.marker.line.color, strict=True) if colour == LIGHT.failed]
    assert framed == ["0", "2"]
    assert ["failed: the value at step 60 is not finite" in text for text in bars.hovertext] == [True, False, False]
    branches = {trace.name: trace for trace in figure.data if trace.type == "scatter"}
    assert list(branches["path to the best fork"].x) == [None, 1, 1, None]
    (crosses,) = [trace for trace in figure.data if trace.name == "failed"]
    assert list(crosses.y) == [0]


def test_the_rows_of_a_family_have_names() -> None:
    view = study_view(golden("journal-1-family"))
    names = lineage(view).layout.yaxis.ticktext
    assert set(names) == {f"{fork.task}, run {fork.fork}" for fork in view.forks}
