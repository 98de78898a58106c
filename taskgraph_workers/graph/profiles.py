"""The profiles as a person who starts an action is offered them."""

from __future__ import annotations

from typing import Any

from taskgraph_workers.errors import listed
from taskgraph_workers.graph.run import config_of
from taskgraph_workers.model import Choice, Config
from taskgraph_workers.resolve import level_problem, limited_by


def usable(config: Config, level: str) -> tuple[str, ...]:
    """The profiles that may be used at a level."""
    return tuple(
        name for name in config.profiles if level_problem(config, Choice(name), level) is None
    )


def profiles_schema(graph_config: Any, level: str | None = None) -> dict[str, Any]:
    """A JSON Schema (draft 7) for the name of a profile, for the input of an action.

    With a ``level``, only of those that may be used there. Without profiles it takes nothing.
    Raises ConfigError for a ``taskgraph.config.GraphConfig`` whose ``workers-config`` is wrong.
    """
    config = config_of(graph_config) or Config()
    names = tuple(config.profiles) if level is None else usable(config, level)
    return {
        "type": "string",
        "title": "Profile",
        "description": "Where tasks run. "
        + ("; ".join(_told(config, name) for name in names) or "There is no profile."),
        "enum": list(names),
    }


def _told(config: Config, name: str) -> str:
    """A profile's name, what it builds on, and where it may be used."""
    profile, limiting = config.profiles[name], limited_by(config, name)
    notes = [f"otherwise as {profile.extends}"] if profile.extends else []
    if limiting is not None and limiting.levels is not None:
        notes.append(f"only at level {listed(limiting.levels)}")
    return f"{name} ({', '.join(notes)})" if notes else name
