"""Whole language-model runs under schedules nobody has run: the law against published laws and the paper's own model.

Loss curves of a 25M-parameter language model (llm_curves_25m), with the authors' split: fit on a cosine, a constant and
one two-stage curve, forecast the other six from their first row. Bars for the law (`mean="law"`): mean absolute error
at most 0.0035, worst relative error at most 0.0031, and the 90 % band holds 0.85 to 0.97 of the rows. Beside it the
Multi-Power Law (arXiv 2503.12811) as published and as fitted here (`_multi_power`), and the paper's model, NARX(q), in
all settings. Two of those are named: the one for whole runs on the clock that long runs want, exponential link and log
clock; and the one that leaving one training curve out would choose, a poor guide.

NARX has no state: what happens next depends on the loss and the rate of the last q intervals. Just after a drop of the
rate and long after it these can be the same while the loss moves differently, so no f(Y, x) can get it right.
"""

from itertools import product

import numpy as np
import torch

from benchmarks import _multi_power
from benchmarks._data import LLM_WARMUP, llm_curves, llm_traces
from benchmarks._figures import SCALE, forecasts_of_curves
from benchmarks._multi_power import Curve
from benchmarks._report import machine, print_results, result, table
from benchmarks._runs import RESULTS
from paceline import Objective, Trace, TraceModel
from paceline.model import Forecast, Forecaster, LawModel
from paceline.views.figures import write_figure

FITTED = ("cosine_24000", "constant_24000", "wsdcon_9")
PUBLISHED = (0.00376, 0.00409)
LINKS, ORDERS, CLOCKS = ("linear", "exponential", "power", "signed"), (1, 2), ("step", "log")
SETTINGS = list(product(LINKS, ORDERS, CLOCKS))
NAMED, NAMED_2 = ("exponential", 1, "log"), ("exponential", 2, "log")
KINDS = ("mae", "worst_relative_error", "coverage90", "mae_late")
FIRST, LAST = LLM_WARMUP, 72_000

SHARED = 8_000  # up to here five of the six curves are the same run as wsdcon_9, which is fitted to

Errors = tuple[float, float, float, float]  # MAE, worst relative error, coverage of the 90 % band, MAE after SHARED


def points(clock: str) -> np.ndarray:
    """Change points over the whole range of the curves, about 16 of them before step 24,000."""
    if clock == "step":
        return np.append(0, np.arange(FIRST, LAST + 1, 1_365))
    return np.geomspace(FIRST, LAST, 24).round().astype(int)


def fit(curves: list[Trace], link: str, order: int, clock: str) -> TraceModel:
    return TraceModel.fit(curves, intervals=points(clock), clock=clock, link=link, order=order)


def ahead(model: Forecaster, curve: Trace) -> Forecast:
    """The curve from its first row on."""
    return model.forecast(curve.schedule, curve.steps[1:], start=curve.head(1))


def errors(forecast: Forecast, curve: Trace) -> Errors:
    truth, (low, high) = curve.values[1:], forecast.band(0.9)
    miss = np.abs(forecast.median - truth)
    late, holds = miss[curve.steps[1:] > SHARED], (truth >= low) & (truth <= high)
    return float(miss.mean()), float((miss / truth).max()), float(holds.mean()), float(late.mean())


def over_all(found: list[Errors]) -> list[float]:
    """Means over the curves; of the worst errors the worst."""
    mae, worst, coverage, late = np.array(found).T
    return [float(mae.mean()), float(worst.max()), float(coverage.mean()), float(late.mean())]


def narx() -> tuple[list[list[object]], list[float], list[list[Errors]]]:
    """Every setting: rows of a table, errors on a left-out training curve, errors on each curve forecast."""
    curves = {
        name: Trace.from_table(c["step"].astype(int), c["lr"], c["loss"], name=name, objective=Objective("min", "log"))
        for name, c in llm_curves().items()
    }
    fitted = [curves[name] for name in FITTED]
    rows, scores, found = list[list[object]](), list[float](), list[list[Errors]]()
    for link, order, clock in SETTINGS:
        left_out = []
        for i, curve in enumerate(fitted):
            model = fit(fitted[:i] + fitted[i + 1 :], link, order, clock)
            left_out.append(errors(ahead(model, curve), curve)[0])
        model = fit(fitted, link, order, clock)
        found.append([errors(ahead(model, c), c) for name, c in curves.items() if name not in FITTED])
        scores.append(float(np.mean(left_out)))
        rows.append([f"NARX({order}) {link}, {clock} clock", scores[-1], *over_all(found[-1])])
    return rows, scores, found


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    curves = llm_traces()
    fitted, held_out = [curves[name] for name in FITTED], [c for name, c in curves.items() if name not in FITTED]
    law = LawModel.fit(fitted)
    forecasts = [ahead(law, curve) for curve in held_out]
    ours = [errors(forecast, curve) for forecast, curve in zip(forecasts, held_out, strict=True)]
    alone = [errors(law.forecast(c.schedule, c.steps[1:]), c) for c in held_out]
    parameters = _multi_power.fit(fitted, LLM_WARMUP)
    refitted = [Curve.of(c.schedule, c.steps, LLM_WARMUP).loss(parameters)[1:] for c in held_out]
    multi_power = [errors(Forecast(c.steps[1:], loss[None]), c) for c, loss in zip(held_out, refitted, strict=True)]
    settings, scores, found = narx()
    best, named, named_2 = int(np.argmin(scores)), SETTINGS.index(NAMED), SETTINGS.index(NAMED_2)
    refit = over_all(multi_power)
    rows: list[list[object]] = [
        ["the law", *over_all(ours)],
        ["the law, not told the first row", *over_all(alone)],
        ["Multi-Power Law (published)", *PUBLISHED, "", ""],
        ["Multi-Power Law (fitted here)", *refit[:2], "", refit[3]],
        ["NARX(2) exponential, log clock", *settings[named_2][2:]],
        ["NARX(1) exponential, log clock", *settings[named][2:]],
    ]
    print(table(["model", "MAE", "worst relative error", "90 % band holds", f"MAE after step {SHARED:,}"], rows))
    print("\nerrors are means over the six curves forecast, the worst one over all of their rows")
    print(f"up to step {SHARED:,} five of the six are the same run as wsdcon_9, which is fitted to; curve by curve:\n")
    each = [
        [curve.name, *ours[i][:3], *multi_power[i][:2], found[named_2][i][0], found[named][i][0]]
        for i, curve in enumerate(held_out)
    ]
    head = ["curve", "law: MAE", "worst", "band holds", "Multi-Power: MAE", "worst", "NARX(2): MAE", "NARX(1): MAE"]
    print(table(head, each))
    names = ", ".join(f"{name} {np.exp(p):.3g}" for name, p in zip(_multi_power.NAMES, parameters, strict=True))
    print(f"\nMulti-Power Law fitted here: {names}\n\nAll settings of NARX:\n")
    settings[best][0] = "(left out) " + str(settings[best][0])
    settings[named][0] = "(named) " + str(settings[named][0])
    header = ["model", "MAE, left-out training curve", "MAE", "worst relative error", "90 % band holds", "MAE late"]
    print(table(header, settings))
    for name, value in zip(KINDS, over_all(ours), strict=True):
        result(f"llm_law_{name}", value)
    result("llm_law_mae_over_published", over_all(ours)[0] / PUBLISHED[0])
    for name in ("mae", "worst_relative_error", "mae_late"):
        result(f"llm_refitted_{name}", refit[KINDS.index(name)])
    for name, row in (("named", settings[named]), ("left_out", settings[best])):
        for kind, value in zip(KINDS, row[2:], strict=True):
            result(f"llm_{kind}_{name}", float(str(value)))
        result(f"llm_mae_over_published_{name}", float(str(row[2])) / PUBLISHED[0])
    figure = forecasts_of_curves(held_out, forecasts, refitted)
    write_figure(figure, RESULTS / "forecast_llm.png", width=1200, scale=SCALE)
    print_results()


if __name__ == "__main__":
    main()
