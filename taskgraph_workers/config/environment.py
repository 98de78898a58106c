"""The choice that somebody makes by an environment variable, or in the text of an option."""

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
    text = environ.get(VARIABLE, "")
    return choice_in(text, VARIABLE) if text.strip() else None


def choice_in(text: str, source: str) -> Any:
    """A choice written as one text: a profile, or YAML for a mapping.

    ``source`` names who wrote it. Raises ConfigError for what is empty, or no YAML.
    """
    text = text.strip()
    if not text:
        raise ConfigError(Problem(f"{source} is empty", hint="name a profile, or leave it out"))
    if not text.startswith("{"):
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(
            Problem(f"{source} is no YAML{place}: {text}", hint="for example '{train: onprem}'")
        ) from None
