"""Journals and settings of format 1, brought to the present format as they are read.

Format 1 held reasons and failures as English sentences, a `cloned` line beside each clone's `proposed` line, and older
names of settings.
"""

import re
from typing import Any, cast

RENAMED_SETTINGS = {"of": "weights", "look": "judge_by", "first": "initial_rates"}
FORMER_SETTINGS: dict[str, Any] = {"every": None}  # of an objective
FORMER_SETTINGS_OF_NEW_TASKS: dict[str, Any] = {"look": "final"}
SEARCH_FIELDS = {"draws": "draws", "grid": "grid", "sweeps": "sweeps", "climbs": "gradient_steps"}
INFILL_FIELDS = {
    "screened": "candidates",
    "starts": "starts",
    "moves": "gradient_steps",
    "rough": "rough_draws",
    "outer": "outer_draws",
    "inner": "inner_draws",
}
DYNAMIC_FIELDS = {"smooth": "smoothing_share", "centred": "centred_grid"}
PLAN_FIELDS = {"first": "initial_forks", "protect": "protect_leader", "edge": "edge_decades"}
RUNG_FIELDS = {"at": "share"}
CHOOSER_NAMES = {"blind": "fixed factor", "model": "model quantile"}
NEW_TASK_FIELDS = {"how": "method", "place": "location", "measure": "prior"}
_UNSOUND = re.compile(r"^the value at step ([\d,]+) is not finite$")


def upgrade_event(data: dict[str, Any]) -> dict[str, Any] | None:
    """A line of format 1 as one of the present format; None for a line that is no longer kept."""
    match data.get("event"):
        case "cloned":
            return None
        case "created":
            return {**data, "settings": upgrade_settings(data["settings"])}
        case "failed":
            fields = {name: value for name, value in data.items() if name not in ("step", "reason")}
            return {**fields, "stop": data["step"], "failure": upgrade_failure(data["reason"])}
        case "dropped":
            return {**data, "reason": _text(data["reason"])}
        case "decided":
            reasons = [_text(reason) for reason in data["reasons"]]
            return {**data, "reasons": reasons, "details": upgrade_details(data.get("details", {}))}
        case "finished":
            fields = {name: value for name, value in data.items() if name != "of"}
            return {**fields, "weights": data["of"]}
        case _:
            return data


def upgrade_details(details: dict[str, Any]) -> dict[str, Any]:
    """The details of a decision under their present names.

    >>> upgrade_details({"place": {"spread": 0.5, "points": [[1.0]]}, "proposals": 1})
    {'location': {'spread': 0.5, 'samples': [[1.0]]}, 'proposals': 1}
    """
    if "place" not in details:
        return details
    location = {"samples" if name == "points" else name: value for name, value in details["place"].items()}
    return {"location" if name == "place" else name: location if name == "place" else v for name, v in details.items()}


def upgrade_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of format 1 under their present names, without those that are gone.

    A setting that is gone is dropped if it has the value under which nothing has changed. A study with another value
    keeps it, and is then refused as a study with other settings.

    >>> upgrade_settings({"strategy": {"strategy": "dynamic", "of": "raw", "look": "final"}})
    {'strategy': {'strategy': 'dynamic', 'weights': 'raw', 'judge_by': 'final'}}
    """
    settings = _without_former(settings)
    if not isinstance(settings.get("strategy"), dict):
        return settings
    given = cast("dict[str, Any]", settings["strategy"])
    strategy = {RENAMED_SETTINGS.get(name, name): value for name, value in given.items()}
    match strategy.get("strategy"):
        case "dynamic":
            strategy = upgrade_dynamic(strategy)
        case "multitask":
            strategy = upgrade_family(strategy)
        case "new task":
            strategy = upgrade_new_task(strategy)
        case _:
            pass
    return {**settings, "strategy": strategy}


def upgrade_dynamic(strategy: dict[str, Any]) -> dict[str, Any]:
    """The settings of a strategy with forks of one run.

    >>> new = upgrade_dynamic({"plan": {"first": 2, "rungs": [{"at": 0.5, "forks": 1}]}, "chooser": {"name": "blind"}})
    >>> new["plan"], new["chooser"]
    ({'initial_forks': 2, 'rungs': [{'share': 0.5, 'forks': 1}]}, {'name': 'fixed factor'})
    """
    strategy = {DYNAMIC_FIELDS.get(name, name): value for name, value in strategy.items()}
    if "plan" in strategy:
        plan = {PLAN_FIELDS.get(name, name): value for name, value in strategy["plan"].items()}
        rungs = [{RUNG_FIELDS.get(name, name): value for name, value in rung.items()} for rung in plan["rungs"]]
        strategy = {**strategy, "plan": {**plan, "rungs": rungs}}
    if "chooser" in strategy:
        name = strategy["chooser"]["name"]
        strategy = {**strategy, "chooser": {**strategy["chooser"], "name": CHOOSER_NAMES.get(name, name)}}
    return strategy


def upgrade_family(strategy: dict[str, Any]) -> dict[str, Any]:
    """The settings of a family of tasks.

    >>> new = upgrade_family({"order": 1, "progress": True, "effort": {"draws": 8, "moves": 2, "climbs": 5}})
    >>> new["search"], new["infill_search"], new["summed_rate"]
    ({'draws': 8, 'gradient_steps': 5}, {'gradient_steps': 2}, True)
    """
    effort, rest = strategy.get("effort", {}), {n: v for n, v in strategy.items() if n not in ("effort", "progress")}
    return {
        **rest,
        "summed_rate": strategy.get("progress", False),
        "max_failures": 3,
        "search": _renamed(effort, SEARCH_FIELDS),
        "infill_search": _renamed(effort, INFILL_FIELDS),
    }


def upgrade_new_task(strategy: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run of a new task."""
    thought, family = strategy.get("thought", {}), strategy.get("family", {})
    objective = {RENAMED_SETTINGS.get(name, name): value for name, value in family.get("objective", {}).items()}
    plain = {name: value for name, value in strategy.items() if name != "thought"}
    return {
        **_renamed(plain, {name: NEW_TASK_FIELDS.get(name, name) for name in plain}),
        **_renamed(thought, {"places": "locations", "models": "models"}),
        "family": {
            **_renamed(family, {name: "summed_rate" if name == "progress" else name for name in family}),
            "objective": objective,
        },
        "search": _renamed(thought, SEARCH_FIELDS),
    }


def _renamed(values: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The values under new names, only those that have one."""
    return {names[name]: value for name, value in values.items() if name in names}


def _without_former(settings: dict[str, Any]) -> dict[str, Any]:
    former = FORMER_SETTINGS
    if settings.get("strategy") == "new task":
        former = {**former, **FORMER_SETTINGS_OF_NEW_TASKS}
    return {
        name: _without_former(cast("dict[str, Any]", value)) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name not in former or value != former[name]
    }


def upgrade_failure(sentence: str) -> dict[str, Any]:
    """A failure from the sentence that described it."""
    unsound = _UNSOUND.match(sentence)
    if unsound is not None:
        return {"kind": "not finite", "step": int(unsound[1].replace(",", ""))}
    if sentence.startswith("this interval cost "):
        return {"kind": "lost", "message": sentence}
    return {"kind": "raised", "message": sentence}


def _text(sentence: str) -> dict[str, Any]:
    return {"kind": "text", "text": sentence}
