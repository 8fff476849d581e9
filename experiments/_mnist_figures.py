"""Figures of `experiments.mnist`, from its results alone."""


def draw() -> None:
    pass
