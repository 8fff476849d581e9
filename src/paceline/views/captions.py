"""A heading and a caption for each figure, for pages that show them."""

from typing import NamedTuple


class Caption(NamedTuple):
    """What a page writes above and below a figure."""

    heading: str
    text: str


CAPTIONS = {
    "traces": Caption(
        "Runs and rates",
        "The values of each fork and, below, its learning rate. A circle is the start of a clone. The bold line is the "
        "whole run of the best fork. Dashed lines are forks that failed.",
    ),
    "lineage": Caption(
        "Lineage",
        "Each bar is a fork, or a run of a family, at one rate, which sets its colour. Lines lead from a fork to its "
        "clones. The path to the best fork is framed. A cross is a failure.",
    ),
    "forecasts": Caption(
        "Forecasts",
        "The forecasts that the decisions were made with, and the observations that followed. They are those of the "
        "journal: nothing is fitted again.",
    ),
    "surface": Caption(
        "The model",
        "The latent functions of the trace model at each decision, over the value that an interval starts from and its "
        "rate. Orange marks are the rates that the decision gave to forks.",
    ),
    "failure": Caption(
        "Failures",
        "The probability that an interval fails, at each decision. Orange marks are the rates that the decision gave "
        "to forks.",
    ),
    "embedding": Caption(
        "Tasks",
        "The tasks in the embedding of the family's model. Tasks near each other behave alike.",
    ),
    "calibration": Caption(
        "Calibration",
        "Observations against the forecasts made of them. Points of one run resemble each other, so a few runs prove "
        "little.",
    ),
    "costs": Caption(
        "Cost against value",
        "The steps of all forks, counted in whole runs, and the value of each study: filled if it is finished, open "
        "while it runs. Lines are the best value at the end of an interval so far. Compare values only between studies "
        "of the same objective.",
    ),
}
"""Captions by the name of the figure."""
