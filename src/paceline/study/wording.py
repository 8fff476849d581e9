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
        return _list_fields(reason)
    try:
        return sentence(reason.data)
    except (LookupError, TypeError, ValueError, AttributeError):  # a journal may lack a field
        return _list_fields(reason)


def _list_fields(reason: Reason) -> str:
    numbers = ", ".join(f"{name} {value}" for name, value in reason.data.items())
    return f"{reason.kind}: {numbers}" if numbers else reason.kind


def describe_all(reasons: Sequence[Reason]) -> list[str]:
    """All of them."""
    return [describe(reason) for reason in reasons]


def describe_failure(failure: Failure) -> str:
    """How an interval failed, as a sentence."""
    place = f" ({failure.place})" if failure.place else ""
    match failure.kind:
        case "not finite":
            return f"the value at step {failure.step:,} is not finite" if failure.step is not None else "not finite"
        case "diverged" if failure.message and failure.step is not None:
            return f"it has diverged by step {failure.step:,}: {failure.message}"
        case "diverged":
            return f"the value at step {failure.step:,} is too large to learn from" if failure.step else "diverged"
        case "turned" if failure.step is not None:
            return f"it has turned for the worse since its best value, {failure.message} at step {failure.step:,}"
        case "out of memory":
            return f"out of memory: {failure.message}{place}" if failure.message else "out of memory"
        case "no space":
            return f"no space is left on the disk: {failure.message}{place}"
        case _:
            return f"{failure.message}{place}"


def format_number(value: float | None) -> str:
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
        f"; the best state so far is that of fork {best['fork']} at step {best['step']:,} "
        f"({format_number(best['value'])})"
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


def _kind_of_rates(data: Data) -> str:
    return f"{'multipliers' if data['multipliers'] else 'rates'} {_rates(data['rates'])}"


def _initial_design(data: Data) -> str:
    runs, first = data["runs"], data["first"]
    numbers = str(first) if len(runs) == 1 else f"{first} to {first + len(runs) - 1}"
    each = "; ".join(f"task {run['task']!r} at {_kind_of_rates(run)}" for run in runs)
    return f"first runs by Latin hypercube, {numbers} of {data['total']}: {each}"


def _informative_run(data: Data) -> str:
    rivals = ", ".join(f"{row['task']!r} {row['variance']:.2e}" for row in data["rivals"])
    return (
        f"run {data['fork']} of task {data['task']!r} at {_kind_of_rates(data)}: the variance at the best schedules is "
        f"expected to fall from {data['before']:.2e} to {data['after']:.2e}"
        + (f" at a cost of {data['cost']:g}" if "cost" in data else "")
        + (f"; with a run of another task to: {rivals}" if rivals else "")
    )


def _answers(data: Data) -> str:
    runs, failed = data["runs"], data["failed"]
    count = "1 run is made" if runs == 1 else f"{runs} runs are made"
    return f"{count}{f', {failed} of them failed' if failed else ''}: an answer for each task"


def _plan(data: Data) -> str:
    limited = "below the plan's rate" if data["limited"] else "the first rate of the plan"
    statistic = "mean" if data["alpha"] is None else f"{data['alpha']:.2g}-quantile"
    return (
        f"fork {data['fork']} runs to step {data['step']:,} at {_rate(data['rate'])}, {limited} "
        f"({_rates(data['rates'])}), which has the best {statistic} of the final value, "
        f"{format_number(data['value'])}"
    )


def _turned(data: Data) -> str:
    return (
        f"fork {data['fork']} was best at step {data['step']:,}, at {format_number(data['value'])}, and nothing that "
        f"is left is expected to end better: the study ends {data['saved']:,} steps early"
    )


SENTENCES: dict[str, Callable[[Data], str]] = {
    "text": lambda d: d["text"],
    # forks of one run
    "start": _start,
    "ranking": _ranking,
    "clone": lambda d: (
        f"fork {d['fork']} starts as a clone of fork {d['parent']} at {_rate(d['rate'])}: {describe(d['why'])}"
    ),
    "new rate": lambda d: f"fork {d['fork']} continues at {_rate(d['rate'])}: {describe(d['why'])}",
    "edge": lambda d: (
        f"fork {d['fork']} is best at the {d['edge']} rate tried: fork {d['clone']} tries a rate further out, "
        f"{_rate(d['rate'])}"
    ),
    "contradiction": lambda d: (
        f"the forecast is not used: it expects fork {d['fork']} to end at {format_number(d['forecast'])}, worse than "
        f"its value now, {format_number(d['now'])}"
    ),
    "ended best": lambda d: f"fork {d['fork']} ended best, at {format_number(d['value'])} over its last observations",
    "behind": lambda d: f"its value {format_number(d['value'])} is behind",
    "cloned": lambda d: f"its clone, fork {d['clone']}, continues",
    "runs go on": lambda d: f"{d['runs']} runs continue",
    "every run failed": lambda d: "every run failed: lower the upper bound of the rate",
    # why a fork gets a rate
    "factor": lambda d: f"{d['factor']:.2f} times the rate of fork {d['fork']}",
    "no model": lambda d: f"{describe(d['instead'])}, because there is no model yet",
    "best quantile": lambda d: (
        f"its {d['alpha']:.2g}-quantile at step {d['step']:,}, {format_number(d['value'])}, is the best of "
        f"{d['candidates']} candidate rates"
    ),
    "least risky": lambda d: (
        f"no rate is safe enough, P(fail) below {d['limit']:.2g}: the least risky, P(fail) {d['probability']:.2f}"
    ),
    "ends better": _ends_better,
    "unsure": lambda d: f"{describe(d['instead'])}; the forecast favours no other rate clearly",
    # after failures
    "go back": lambda d: (
        f"every fork failed: fork {d['fork']} starts again from step {d['step']:,}, at {_rate(d['rate'])}"
    ),
    "all failed": _all_failed,
    # runs that turn
    "turned": _turned,
    "cannot catch up": lambda d: (
        f"its value {format_number(d['value'])} is not expected to reach {format_number(d['best'])}"
    ),
    "anneal": lambda d: (
        f"fork {d['fork']} starts as a clone of fork {d['parent']} at step {d['start']:,}, and lowers its rate to zero "
        f"by step {d['stop']:,}"
    ),
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
    "ended": lambda d: f"the run ended at {format_number(d['value'])}",
    "diverged": lambda d: "training diverged",
    "all tries diverged": lambda d: "training diverged at every rate tried: lower the bounds of the rate",
    "lower peak": lambda d: (
        f"training diverged: it continues from step {d['step']:,} at {_rate(d['rate'])}, and not above that again"
    ),
    # a family of tasks
    "initial design": _initial_design,
    "no value yet": lambda d: (
        f"no run has shown a value yet: {d['runs']} more by design, in the lower half of the rates"
    ),
    "informative run": _informative_run,
    "task given up": lambda d: f"task {d['task']!r} is given up: {d['runs']} runs and none reached the end",
    "all runs failed": lambda d: "every run failed: lower the upper bound of the rate, or fix the tasks",
    "answers": _answers,
    "worse run": lambda d: (
        f"run {d['best']} of the same task ended better, at {format_number(d['best_value'])} "
        f"against {format_number(d['value'])}"
    ),
    # a new task
    "location": lambda d: f"{d['task']} lies {d['distance']:.2g} from {d['nearest']}, give or take {d['spread']:.2g}",
    "probe": lambda d: (
        f"a probe at {_rates(d['rates'])}: {d['share']:.0%} of what is uncertain about it is where the task lies"
    ),
    "plan": _plan,
    "beyond known runs": lambda d: "its rate is not raised: the run is better than every known run",
    "last interval": lambda d: "its rate is not raised above all it was run at: no interval is left to correct that",
    "other loss": lambda d: (
        f"the task is unlike its family, so this becomes a cold start: its first value is {format_number(d['value'])}, "
        f"known runs began at {format_number(d['low'])} to {format_number(d['high'])}"
    ),
    "unsuitable rate": lambda d: (
        f"the task is unlike its family, so this becomes a cold start: the family's plan begins at {_rate(d['rate'])}, "
        f"the range test says {_rate(d['low'])} to {_rate(d['high'])}"
    ),
    "no progress": lambda d: (
        f"this becomes a cold start: at {_rate(d['rate'])} the first interval made no progress, from "
        f"{format_number(d['before'])} to {format_number(d['value'])}"
    ),
    "rate too low": lambda d: (
        f"the task is unlike its family, so this becomes a cold start: at {_rate(d['rate'])} the run makes progress "
        "without noise, and the family's plan is not higher"
    ),
    "range test limit": lambda d: f"no rate is above {_rate(d['rate'])}, by the range test",
    "first interval failed": lambda d: "the first interval failed, so this becomes a cold start",
    "cold start": lambda d: "the run begins again as a cold start",
    "expected to end worse": lambda d: f"fork {d['best']} is expected to end better",
}
