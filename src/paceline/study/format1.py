"""Journals and settings of format 1, brought to the present format as they are read.

Format 1 held reasons and failures as English sentences, a `cloned` line beside each clone's `proposed` line, and older
names of settings.
"""

import re
from typing import Any, cast

RENAMED_SETTINGS = {"of": "weights", "look": "judge_by", "first": "initial_rates"}
FORMER_SETTINGS: dict[str, Any] = {"every": None}  # of an objective
FORMER_SETTINGS_OF_NEW_TASKS: dict[str, Any] = {"look": "final"}
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
            return {**data, "reasons": [_text(reason) for reason in data["reasons"]]}
        case "finished":
            fields = {name: value for name, value in data.items() if name != "of"}
            return {**fields, "weights": data["of"]}
        case _:
            return data


def upgrade_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of format 1 under their present names, without those that are gone.

    A setting that is gone is dropped if it has the value under which nothing has changed. A study with another value
    keeps it, and is then refused as a study with other settings.

    >>> upgrade_settings({"strategy": {"strategy": "new task", "look": "final", "forks": 1}})
    {'strategy': {'strategy': 'new task', 'forks': 1}}
    """
    settings = _without_former(settings)
    if not isinstance(settings.get("strategy"), dict):
        return settings
    strategy = {RENAMED_SETTINGS.get(name, name): value for name, value in settings["strategy"].items()}
    if "family" in strategy:
        objective = strategy["family"]["objective"]
        renamed = {RENAMED_SETTINGS.get(name, name): value for name, value in objective.items()}
        strategy["family"] = {**strategy["family"], "objective": renamed}
    return {**settings, "strategy": strategy}


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
