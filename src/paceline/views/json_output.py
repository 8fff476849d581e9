"""A study as JSON, for scripts: `paceline show --json`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from paceline.study import BestState, describe
from paceline.views.data import DecisionView, ForkView, StudyView


def study_json(view: StudyView) -> dict[str, Any]:
    """The view as plain data, for scripts. Numbers that are not finite become None."""
    best = view.best
    return {
        "settings": view.settings,
        "finished": view.finished is not None,
        "done_steps": view.done_steps,
        "total_steps": view.total_steps,
        "best": None if best is None else {"fork": best.fork, "values": best.last_values},
        "kept": _kept_json(view.kept),
        "saved_steps": view.saved_steps,
        "forks": [_fork_json(fork) for fork in view.forks],
        "decisions": [_decision_json(decision) for decision in view.decisions],
        **(_family_json(view) if view.tasks else {}),
    }


def _decision_json(decision: DecisionView) -> dict[str, Any]:
    """A decision without its details, which are in the journal."""
    fields = {
        key: value for key, value in decision._asdict().items() if key not in ("done_steps", "intervals", "details")
    }
    return {**fields, "reasons": [{**r.to_json(), "sentence": describe(r)} for r in decision.reasons]}


def _family_json(view: StudyView) -> dict[str, Any]:
    """What a family has besides: the answer and the best run of each task, and its location in the model."""
    answers = {t: {**asdict(a), "schedule": a.schedule.to_json()} for t, a in view.answers.items()}
    best = {t: {**asdict(b), "schedule": b.schedule.to_json()} for t, b in view.best_runs.items()}
    embedding = {task: location.tolist() for task, location in view.embedding.items()}
    return {"tasks": list(view.tasks), "answers": answers, "best_runs": best, "embedding": embedding}


def finite_values(values: Mapping[str, Sequence[float]]) -> dict[str, list[float | None]]:
    """Columns as JSON can hold them."""
    return {weights: [v if isfinite(v) else None for v in column] for weights, column in values.items()}


def _kept_json(kept: BestState | None) -> dict[str, Any] | None:
    """A best moment, without the task, which is the fork's."""
    return kept and {"fork": kept.fork, "step": kept.step, "value": kept.value, "weights": kept.weights}


def _fork_json(fork: ForkView) -> dict[str, Any]:
    band = None if fork.forecast is None else fork.forecast._asdict()
    return {
        **fork._asdict(),
        "reason": fork.reason,
        "failure": None if fork.failure is None else fork.failure.to_json(),
        "drop": None if fork.drop is None else fork.drop.to_json(),
        "schedule": fork.schedule.to_json(),
        "rate": fork.rate,
        "values": finite_values(fork.values),
        "kept": _kept_json(fork.kept),
        "forecast": band,
    }
