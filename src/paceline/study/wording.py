"""Reasons and failures in English. No other module turns one into a sentence, and none reads a sentence back.

Each kind of reason has a function of its data. Sentences begin in lower case and have no full stop: whoever shows one
adds what its place needs.
"""

from collections.abc import Callable, Sequence
from typing import Any

from paceline.study.reasons import Failure, Reason

Data = dict[str, Any]


def describe(reason: Reason) -> str:
    """A reason as a sentence.

    >>> from paceline.study import because
    >>> describe(because("behind", value=0.25))
    'its value 0.25 is behind'
    """
    sentence = SENTENCES.get(reason.kind)
    if sentence is None:  # a kind of a user's own strategy
        numbers = ", ".join(f"{name} {value}" for name, value in reason.data.items())
        return f"{reason.kind}: {numbers}" if numbers else reason.kind
    return sentence(reason.data)


def describe_all(reasons: Sequence[Reason]) -> list[str]:
    """All of them."""
    return [describe(reason) for reason in reasons]


def describe_failure(failure: Failure) -> str:
    """How an interval failed, as a sentence."""
    place = f" ({failure.place})" if failure.place else ""
    match failure.kind:
        case "not finite":
            return f"the value at step {failure.step:,} is not finite" if failure.step is not None else "not finite"
        case "diverged":
            return f"the value at step {failure.step:,} is too large to learn from" if failure.step else "diverged"
        case "out of memory":
            return f"out of memory: {failure.message}{place}" if failure.message else "out of memory"
        case "no space":
            return f"no space is left on the disk: {failure.message}{place}"
        case _:
            return f"{failure.message}{place}"


def number(value: float | None) -> str:
    """Four digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def _rate(value: float) -> str:
    return f"{value:.3g}"


def _rates(values: Sequence[float]) -> str:
    return ", ".join(_rate(value) for value in values)


def _start(data: Data) -> str:
    rates = data["rates"]
    return f"{len(rates)} forks start at {_rates(rates)}" if len(rates) > 1 else f"one fork starts at {_rates(rates)}"


def _ranking(data: Data) -> str:
    values = ", ".join(f"{row['fork']}: {row['value']:.5g}" for row in data["ranking"])
    return f"at step {data['step']:,}, best first: {values}"


def _ends_better(data: Data) -> str:
    factor = f"{data['factor']:.2f} times the rate of fork {data['fork']}"
    probability = f"{100 * data['probability']:.0f} % probability"
    return f"{factor}; it ends better than at {_rate(data['otherwise'])} with {probability}"


def _all_failed(data: Data) -> str:
    tries, best = data["tries"], data["best_state"]
    again = f", even after going back {tries} {'time' if tries == 1 else 'times'}" if tries else ""
    where = (
        f"; the best state so far is that of fork {best['fork']} at step {best['step']:,} ({number(best['value'])})"
        if best
        else ""
    )
    advice = {
        "first value": "the first value, before any update, is not finite: check what the training reports, and its "
        "first weights",
        "rates": "lower the upper bound of the rate, or check the training at a small rate",
        "errors": "the training raised an error at every rate: fix it, and start again",
    }[data["cause"]]
    return f"every fork failed{again}{where}: {advice}"


SENTENCES: dict[str, Callable[[Data], str]] = {
    "text": lambda d: d["text"],
    # forks of one run
    "start": _start,
    "ranking": _ranking,
    "clone": lambda d: (
        f"fork {d['fork']} starts as a clone of fork {d['parent']} at {_rate(d['rate'])}: {describe(d['why'])}"
    ),
    "new rate": lambda d: f"fork {d['fork']} goes on at {_rate(d['rate'])}: {describe(d['why'])}",
    "edge": lambda d: (
        f"fork {d['fork']} is best at the {d['edge']} rate tried: fork {d['clone']} tries a rate further out, "
        f"{_rate(d['rate'])}"
    ),
    "contradiction": lambda d: (
        f"the forecast is not used: it expects fork {d['fork']} to end at {number(d['forecast'])}, worse than its "
        f"value now, {number(d['now'])}"
    ),
    "ended best": lambda d: f"fork {d['fork']} ended best, at {number(d['value'])} over its last observations",
    "behind": lambda d: f"its value {number(d['value'])} is behind",
    "cloned": lambda d: f"its clone, fork {d['clone']}, goes on",
    # why a fork gets a rate
    "factor": lambda d: f"{d['factor']:.2f} times the rate of fork {d['fork']}",
    "no model": lambda d: f"{describe(d['instead'])}, because there is no model yet",
    "best quantile": lambda d: (
        f"its {d['alpha']:.2g}-quantile at step {d['step']:,}, {number(d['value'])}, is the best of "
        f"{d['candidates']} candidate rates"
    ),
    "ends better": _ends_better,
    "unsure": lambda d: f"{describe(d['instead'])}; the forecast favours no other rate clearly",
    "as before": lambda d: "the same rate as before",
    # after failures
    "go back": lambda d: (
        f"every fork failed: fork {d['fork']} starts again from step {d['step']:,}, at {_rate(d['rate'])}"
    ),
    "all failed": _all_failed,
    "no steps left": lambda d: "no steps are left for it after going back",
    "does not run": lambda d: f"fork {d['fork']} does not run: no steps are left for it after going back",
    # one run without forks
    "range test": lambda d: (
        f"range test: the rate rises from {_rate(d['low'])} to {_rate(d['high'])} in {d['steps']:,} steps"
    ),
    "range test observed once": lambda d: (
        f"the range test was observed only once, which is too little: observe at least every {d['steps'] // 2:,} steps"
    ),
    "range test over": lambda d: "the range test is over",
    "range test result": lambda d: f"the range test suggests {_rate(d['rate'])}: the run starts with this peak",
    "new peak": lambda d: f"at step {d['step']:,} the peak becomes {_rate(d['rate'])}: {describe(d['why'])}",
    "too few observations": lambda d: "too few observations to correct it",
    "noise and progress": lambda d: (
        f"noise costs {_rate(d['noise'])}, and training for e times as long gains {_rate(d['progress'])}"
    ),
    "ended": lambda d: f"the run ended at {number(d['value'])}",
    "diverged": lambda d: "training diverged",
    "all tries diverged": lambda d: "training diverged at every rate tried: lower the bounds of the rate",
    "lower peak": lambda d: (
        f"training diverged: it goes on from step {d['step']:,} at {_rate(d['rate'])}, and not above that again"
    ),
}
