"""What each figure shows, in a heading and a sentence, for pages that show them."""

CAPTIONS: dict[str, tuple[str, str]] = {
    "traces": (
        "Runs and rates",
        "What each fork observed, and below it the learning rate it ran at. Circles are where clones began, "
        "the bold line is the whole run of the best fork, dashed lines failed.",
    ),
    "lineage": (
        "Lineage",
        "A bar is a fork, or a run of a family, at one rate, which is its colour; lines lead from parents "
        "to clones, and what led to the best fork is framed, and a cross is a failure.",
    ),
    "forecasts": (
        "Forecasts",
        "The bands that decisions were made with, as they were journaled, and the observations that "
        "followed. Nothing is fitted again.",
    ),
    "surface": (
        "The model",
        "Latent functions of the trace model over the value an interval begins at and its rate, as each "
        "decision saw them; orange marks are the rates it gave to forks.",
    ),
    "failure": (
        "Failures",
        "How likely an interval is to fail at a rate, as each decision saw it; orange marks are the rates "
        "it gave to forks.",
    ),
    "embedding": (
        "Tasks",
        "Where the model of a family sees its tasks: those near each other behave alike.",
    ),
    "calibration": (
        "Calibration",
        "Observations against the forecasts that were made of them. Points of one run are alike, so a few "
        "runs say little.",
    ),
    "costs": (
        "Cost against value",
        "Steps of all forks in units of one run, and the value each study ended at (filled) or stands at "
        "(open); lines are the best value at the end of an interval so far. Values compare only between "
        "studies of the same objective.",
    ),
}
