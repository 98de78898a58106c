"""The choice that somebody makes for a local look, by an environment variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import yaml

from taskgraph_workers.errors import ConfigError, Problem

#: The environment variable for a local look at another profile.
VARIABLE = "TASKGRAPH_WORKERS_PROFILE"


def inside_task(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a Taskcluster task, where what was chosen must be recorded."""
    return bool(environ.get("TASK_ID"))


def from_environment(environ: Mapping[str, str] = os.environ) -> Any:
    """What the environment variable says: a profile, or YAML for a mapping; None if unset."""
    return choice_in(environ.get(VARIABLE, ""), VARIABLE)


def choice_in(text: str, source: str) -> Any:
    """A choice written as one text: a profile, or YAML for a mapping; None where it is empty.

    ``source`` names who wrote it. Raises ConfigError for what is no YAML.
    """
    text = text.strip()
    if not text.startswith("{"):
        return text or None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(
            Problem(f"{source} is no YAML{place}: {text}", hint="for example {train: onprem}")
        ) from None
