"""Tables of `experiments.mnist`, from its results alone."""


def show() -> None:
    pass
