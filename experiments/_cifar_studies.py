"""The methods and studies of the CIFAR-10 experiment."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from benchmarks.peers import AutoLRS, PopulationBasedBandits, PopulationBasedTraining
from paceline.shapes import Constant, Cosine, Exponential, Linear, OneCycle, Shape, WarmupStableDecay
from paceline.strategy import Dynamic, FixedSchedules, Strategy

EPOCHS = {20: 40, 56: 100}
BOUNDS, PAPER_BOUNDS = (1e-5, 3e-2), (1e-5, 1e-2)
FACTORS, PEAKS = (0.5, 0.63, 0.77, 0.9), (1e-3, 3e-3, 1e-2)


class Method(NamedTuple):
    """A strategy, the trace it follows and the bounds of its rates."""

    make: Callable[[], Strategy]
    trace: str = "validation loss"
    lr: tuple[float, float] = BOUNDS


def fixed(pairs: Iterable[tuple[Shape, float]]) -> Method:
    """Runs under fixed schedules, each with its peak. Their reports are for figures; they are measured at their end."""
    bases, peaks = zip(*pairs, strict=True)
    return Method(lambda: FixedSchedules(bases, len(bases), peaks=peaks, intervals=20), "batches")


def horizon(trace: str, **settings: Any) -> Method:
    """Our default strategy, with settings."""
    return Method(lambda: Dynamic.horizon(**settings), trace)


def paper(**settings: Any) -> Method:
    """The paper's Algorithm 1: five forks, twenty intervals, linear link, the loss of the batches every 50 steps."""
    return Method(lambda: Dynamic.paper(**settings), "batches", PAPER_BOUNDS)


def decays(peak: float) -> Method:
    """Exponential decays by a factor per tenth of the run: per 10 epochs, where there are 100 as in the paper."""
    return fixed((Exponential(factor**10), peak) for factor in FACTORS)


FIXED: dict[str, Method] = {
    "constant": fixed((Constant(), 10 ** (-5 + 0.75 * i)) for i in range(5)),
    "exponential 1e-4": decays(1e-4),
    "exponential 1e-3": decays(1e-3),
    "exponential 1e-2": decays(1e-2),
    "cosine": fixed((Cosine(), peak) for peak in PEAKS),
    "linear": fixed((Linear(), peak) for peak in PEAKS),
    "one-cycle": fixed((OneCycle(), peak) for peak in (3e-3, 1e-2, 3e-2)),  # its best peak is higher than the others'
    "warmup-stable-decay": fixed((WarmupStableDecay(), peak) for peak in PEAKS),
    # for other seeds of ResNet-56: the three best on validation with seed 0, and the best in training loss
    "best": fixed(
        [(OneCycle(), 3e-3), (WarmupStableDecay(), 1e-3), (WarmupStableDecay(), 3e-3), (Cosine(), 1e-3)],
    ),
}
ADAPTIVE: dict[str, Method] = {
    "paper": paper(),
    "greedy": Method(Dynamic.greedy, "batches", PAPER_BOUNDS),
    **{
        f"horizon {cost:g}, {trace}": horizon(trace, cost=cost)
        for cost in (1.5, 2.3, 3.2, 5)
        for trace in ("training loss", "validation loss", "validation error")
    },
    **{
        f"horizon 2.3, {trace}, one-cycle": horizon(trace, cost=2.3, base=OneCycle())
        for trace in ("validation loss", "validation error")
    },
    "horizon 2.3, training loss, cosine": horizon("training loss", cost=2.3, base=Cosine()),
    "horizon 2.3, validation error, final": horizon("validation error", cost=2.3, judge_by="final"),
    "PBT": Method(PopulationBasedTraining),
    "PB2": Method(PopulationBasedBandits),
    "AutoLRS": Method(lambda: AutoLRS(cost=5), "batches"),  # its trials are short, and want many observations
    "paper, keep each": paper(keep_each=True),
    "paper, d = 10": paper(intervals=10),
    "paper, d = 40": paper(intervals=40),
    "paper, q = 2": paper(order=2),
    "paper, q = 3": paper(order=3),
}
METHODS = {**FIXED, **ADAPTIVE}
# Algorithm 1, the printed one first. Until that has been run, the paper's claims are judged by `greedy` of release
# 0.1.0: all rates of a decision chosen at once, with our additions to the model. Its studies are shown, not run again.
ALGORITHM_1 = ("paper", "greedy 0.1.0")


class Unit(NamedTuple):
    """One study."""

    depth: int
    method: str
    seed: int

    @property
    def name(self) -> str:
        """A name for its folder."""
        return f"resnet{self.depth}/{self.method.replace(', ', '-').replace(' = ', '').replace(' ', '-')}-{self.seed}"


def all_units() -> list[Unit]:
    """All studies of the experiment, the most important first."""
    main = [f"horizon {cost:g}, {trace}" for trace in ("validation error", "training loss") for cost in (2.3, 5)]
    units = [Unit(56, "best", seed) for seed in (1, 2)]
    units += [Unit(56, method, seed) for method in (*main, "paper", "greedy") for seed in range(3)]
    units += [Unit(56, method, 0) for method in FIXED if method != "best"]
    once = [method for method in ADAPTIVE if method.endswith(("one-cycle", "cosine"))]  # a choice of settings
    rest = [method for method in METHODS if method not in (*once, "best")]
    units += [Unit(20, method, seed) for seed in range(3) for method in rest]
    return units + [Unit(20, method, 0) for method in once]
