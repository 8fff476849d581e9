"""How far the paper's model is from forecasting whole language-model runs under schedules nobody has run.

Loss curves of a 25M-parameter language model (llm_curves_25m), with the authors' split: fit on a cosine, a constant and
one two-stage curve, forecast the other six from their first row. All settings are shown. Two are named: the paper's
model for whole runs on the clock that long runs want, NARX(1) with the exponential link and the log clock; and the one
that leaving one training curve out would choose, which with two curves left to fit is a poor guide, and is shown as it
is. Published beside them: the Multi-Power Law (arXiv 2503.12811). No bar yet.

The model is NARX: what happens next depends on the loss and the rate of the last q intervals. Just after a drop of the
rate and long after it, loss and rate can be the same while the loss moves differently, so no f(Y, x) can get it right.
"""

from itertools import product

import numpy as np
import torch

from benchmarks._data import llm_curves
from benchmarks._report import machine, print_results, result, table
from paceline import Objective, Trace, TraceModel

FITTED = ("cosine_24000", "constant_24000", "wsdcon_9")
PUBLISHED = (0.00376, 0.00409)
LINKS, ORDERS, CLOCKS = ("linear", "exponential", "power", "signed"), (1, 2), ("step", "log")
NAMED = ("exponential", 1, "log")
FIRST, LAST = 2_160, 72_000


def points(clock: str) -> np.ndarray:
    """Change points over the whole range of the curves, about 16 of them before step 24,000."""
    if clock == "step":
        return np.append(0, np.arange(FIRST, LAST + 1, 1_365))
    return np.geomspace(FIRST, LAST, 24).round().astype(int)


def fit(curves: list[Trace], link: str, order: int, clock: str) -> TraceModel:
    return TraceModel.fit(curves, intervals=points(clock), clock=clock, link=link, order=order)


def errors(model: TraceModel, curve: Trace) -> tuple[float, float, float]:
    """Mean absolute error, worst relative error and coverage of the 90 % band."""
    forecast = model.forecast(curve.schedule, curve.steps[1:], start=curve.head(1))
    truth, (low, high) = curve.values[1:], forecast.band(0.9)
    miss = np.abs(forecast.median - truth)
    return float(miss.mean()), float((miss / truth).max()), float(np.mean((truth >= low) & (truth <= high)))


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    objective = Objective(transform="log")
    curves = {
        name: Trace.from_table(c["step"].astype(int), c["lr"], c["loss"], name=name, objective=objective)
        for name, c in llm_curves().items()
    }
    fitted = [curves[name] for name in FITTED]
    held_out = [curve for name, curve in curves.items() if name not in FITTED]
    rows, scores = [], []
    for link, order, clock in product(LINKS, ORDERS, CLOCKS):
        left_out = []
        for i, curve in enumerate(fitted):
            others = fitted[:i] + fitted[i + 1 :]
            left_out.append(errors(fit(others, link, order, clock), curve)[0])
        model = fit(fitted, link, order, clock)
        found = np.array([errors(model, curve) for curve in held_out])
        score = float(np.mean(left_out))
        scores.append(score)
        rows.append(
            [f"NARX({order}) {link}, {clock} clock", score, *found.mean(0)[:1], found[:, 1].max(), found[:, 2].mean()]
        )
    best, named = int(np.argmin(scores)), list(product(LINKS, ORDERS, CLOCKS)).index(NAMED)
    rows[best][0] = "(left out) " + str(rows[best][0])
    rows[named][0] = "(named) " + str(rows[named][0])
    header = ["model", "MAE, left-out training curve", "MAE", "worst relative error", "90 % band holds"]
    print(table(header, [*rows, ["Multi-Power Law (published)", "", *PUBLISHED, ""]]))
    print("errors are means over the six curves forecast, the worst one over all of their rows")
    for name, row in (("named", rows[named]), ("left_out", rows[best])):
        result(f"llm_mae_{name}", float(row[2]))
        result(f"llm_worst_relative_error_{name}", float(row[3]))
        result(f"llm_coverage90_{name}", float(row[4]))
        result(f"llm_mae_over_published_{name}", float(row[2]) / PUBLISHED[0])
    print_results()


if __name__ == "__main__":
    main()
