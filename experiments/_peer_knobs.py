"""What a peer that is no tuner makes of a budget: its main knob on a grid, no package needed to know it."""

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the range in decades: the middles of five equal parts
FACTORS = (0.1, 0.5, 1.0, 2.0, 10.0)  # those that Prodigy's authors name
# runs at each budget, in units of T: the values of the knob, as shares of the bounds where the knob is a rate
KNOBS: dict[str, dict[int, tuple[float | None, ...]]] = {
    "Schedule-Free": {1: (None,), 2: (0.3, 0.7), 5: SHARES},
    "Prodigy": {1: (1.0,), 2: (1.0, 2.0), 5: FACTORS},
    "D-Adaptation": {1: (1.0,), 2: (1.0, 2.0), 5: FACTORS},
    "ReduceLROnPlateau": {1: (0.5,), 2: (0.3, 0.7), 5: SHARES},
}
RATES = ("Schedule-Free", "ReduceLROnPlateau")  # whose knob is a rate


def units(method: str, budget: int) -> list[str]:
    """Names of the single runs that a method makes of a budget."""
    return [f"{method} {'default' if knob is None else f'{knob:g}'}" for knob in KNOBS[method][budget]]
