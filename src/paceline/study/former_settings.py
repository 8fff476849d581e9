"""Settings that earlier versions wrote and this one no longer has, so that their studies can be continued.

A setting is listed with the one value under which nothing has changed. A study begun with another value keeps it, and
is then refused as a study with other settings.
"""

from typing import Any, cast

FORMER_SETTINGS: dict[str, Any] = {"every": None}  # of an objective
FORMER_SETTINGS_OF_NEW_TASKS: dict[str, Any] = {"look": "final"}


def without_former_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as this version would write them.

    >>> without_former_settings({"strategy": {"strategy": "new task", "look": "final", "forks": 1}})
    {'strategy': {'strategy': 'new task', 'forks': 1}}
    >>> without_former_settings({"objective": {"mode": "min", "every": 7}})
    {'objective': {'mode': 'min', 'every': 7}}
    """
    former = FORMER_SETTINGS
    if settings.get("strategy") == "new task":
        former = {**FORMER_SETTINGS, **FORMER_SETTINGS_OF_NEW_TASKS}
    return {
        name: without_former_settings(cast(dict[str, Any], value)) if isinstance(value, dict) else value
        for name, value in settings.items()
        if name not in former or value != former[name]
    }
